package warehouse

import (
	"encoding/json"
	"fmt"
	"slices"
	"testing"
)

func TestMembersAndElements(t *testing.T) {
	var got []string
	keep := func(key, value []byte) error {
		got = append(got, fmt.Sprintf("%s=%s", key, value))
		return nil
	}
	text := "\t{ \"a\" : {\"x\":[1,{\"y\":\"}\"}]} ,\"\":\"q\\\"]\\\\\",\n\"b\\u0063\":-1.5e3, \"d\":null,\"e\":[] ,\"f\":{}}\r\n"
	if err := members([]byte(text), keep); err != nil {
		t.Fatal(err)
	}
	want := []string{`a={"x":[1,{"y":"}"}]}`, `="q\"]\\"`, `bc=-1.5e3`, `d=null`, `e=[]`, `f={}`}
	if !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
	got = nil
	if err := elements([]byte(`[ 1,[2] , "3"]`), func(value []byte) error { return keep(nil, value) }); err != nil {
		t.Fatal(err)
	}
	if want := []string{"=1", "=[2]", `="3"`}; !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
	for _, empty := range []string{"null", "[]", " [ ] "} {
		if err := elements([]byte(empty), func([]byte) error { return errJSON }); err != nil {
			t.Errorf("%q: %v", empty, err)
		}
	}
}

func TestMalformedJSONIsRefused(t *testing.T) {
	ignore := func(_, _ []byte) error { return nil }
	for _, text := range []string{
		"", "{", "{}x", "[]", "1", `{"a"}`, `{"a":}`, `{"a":1,}`, `{"a":1 "b":2}`, `{"a":[}]}`, `{"a":{]}`, `{"a":"`, `{"a":"\"}`,
		`{a:1}`, `{"a":1`, `{"a":1}}`, `{"a":[1}`, `{,}`, `{"a":1]`,
	} {
		if err := members([]byte(text), ignore); err == nil {
			t.Errorf("%q is taken", text)
		}
	}
	for _, text := range []string{"[", "[1", "[1,]", "[,]", "[1 2]", "{}", "nul", "[1]]"} {
		if err := elements([]byte(text), func([]byte) error { return nil }); err == nil {
			t.Errorf("%q is taken", text)
		}
	}
}

// FuzzMembers compares the scan with encoding/json where that takes the text.
func FuzzMembers(f *testing.F) {
	f.Add([]byte(`{"a":[1,{"b":"c\"d"}],"e":null}`))
	f.Add([]byte(`{"\u00e9":{"x":[[],{}]}, "y" : "\\"}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		var want map[string]json.RawMessage
		valid := json.Unmarshal(text, &want) == nil && want != nil
		got := map[string]string{}
		err := members(text, func(key, value []byte) error {
			got[string(key)] = string(value)
			return nil
		})
		if !valid {
			return
		}
		if err != nil {
			t.Fatalf("%q: %v", text, err)
		}
		for key, value := range want {
			if plain, ok := got[key]; ok && plain != string(value) {
				t.Errorf("%q: %q is %q, want %q", text, key, plain, value)
			}
		}
	})
}
