package warehouse

import (
	"encoding/json"
	"testing"

	"github.com/apache/iceberg-go"
)

func TestExactDefaults(t *testing.T) {
	const raw = `{"type":"struct","schema-id":3,"identifier-field-ids":[1],"fields":[
		{"id":1,"name":"a","required":true,"type":"long","initial-default":9007199254740993},
		{"id":2,"name":"s","required":false,"type":{"type":"struct","fields":[
			{"id":3,"name":"b","required":false,"type":"long","initial-default":-9007199254740995}]}},
		{"id":4,"name":"l","required":false,"type":{"type":"list","element-id":5,"element-required":false,"element":
			{"type":"struct","fields":[{"id":6,"name":"c","required":false,"type":"double","initial-default":0.1}]}}},
		{"id":7,"name":"t","required":false,"type":"string","initial-default":"x"}]}`
	plain := new(iceberg.Schema)
	if err := json.Unmarshal([]byte(raw), plain); err != nil {
		t.Fatal(err)
	}
	s, err := exactDefaults(plain, []byte(raw))
	if err != nil {
		t.Fatal(err)
	}
	if s.ID != 3 || len(s.IdentifierFieldIDs) != 1 {
		t.Errorf("schema %d, identifiers %v", s.ID, s.IdentifierFieldIDs)
	}
	for id, want := range map[int]any{1: json.Number("9007199254740993"), 3: json.Number("-9007199254740995"), 6: json.Number("0.1"), 7: "x"} {
		f, ok := s.FindFieldByID(id)
		if !ok || f.InitialDefault != want {
			t.Errorf("field %d: default %v, want %v", id, f.InitialDefault, want)
		}
	}
}
