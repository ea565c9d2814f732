package tree

import (
	"strings"
	"testing"
	"time"
	"unicode/utf8"
)

func TestEscapeName(t *testing.T) {
	for _, c := range []struct{ name, want string }{
		{"orders", "orders"},
		{"Weird Name-é.1", "Weird Name-é.1"},
		{"feature/x", "feature%2Fx"},
		{"release/2024-01 é", "release%2F2024-01 é"},
		{"100%", "100%25"},
		{"%2F", "%252F"},
		{".", "%2E"},
		{"..", "%2E%2E"},
		{"...", "%2E.."},
		{".hidden", "%2Ehidden"},
		{"a.b", "a.b"},
		{"a\x00b\n\x7f", "a%00b%0A%7F"},
		{"\xff\xe9t\xe9", "%FF%E9t%E9"},
		{"�", "�"}, // the replacement character itself is valid
	} {
		if got := escapeName(c.name); got != c.want {
			t.Errorf("escapeName(%q) = %q, want %q", c.name, got, c.want)
		}
	}
}

func FuzzEscapeName(f *testing.F) {
	f.Add("a/b", "a%2Fb")
	f.Add("..", "%2E%2E")
	f.Fuzz(func(t *testing.T, a, b string) {
		ea, eb := escapeName(a), escapeName(b)
		if a != b && ea == eb {
			t.Errorf("%q and %q both escape to %q", a, b, ea)
		}
		if fit := fitName(ea, "", a); fit == "" || len(fit) > maxName || strings.ContainsAny(fit, "/\x00") ||
			fit == "." || fit == ".." || !utf8.ValidString(fit) {
			t.Errorf("%q becomes %q", a, fit)
		}
	})
}

func TestFitName(t *testing.T) {
	long := strings.Repeat("é", 200) // 400 bytes
	got := fitName(long, "", long)
	if len(got) > maxName || len(got) < maxName-2 || !utf8.ValidString(got) {
		t.Errorf("cut to %d bytes, valid %t", len(got), utf8.ValidString(got))
	}
	if other := fitName(long+"x", "", long+"x"); other == got {
		t.Error("two long names are cut to one")
	}
	escaped := strings.Repeat("%2F", 100)
	got = fitName(escaped, "~table", strings.Repeat("/", 100))
	head := got[:strings.IndexByte(got, '~')]
	if len(head)%3 != 0 || !strings.HasSuffix(got, "~table") || len(got) > maxName {
		t.Errorf("an escape was cut in two: %q", got)
	}
	if got := fitName(strings.Repeat("a", maxName), "", "a"); len(got) != maxName || strings.Contains(got, "~") {
		t.Errorf("a name that fits was changed to %q", got)
	}
}

func TestStem(t *testing.T) {
	for _, c := range []struct{ path, want string }{
		{"file:/w/data/00000-1.parquet", "00000-1"},
		{"s3://b/data/p=a%2Fb/x.gz.parquet", "x.gz"},
		{"plain", "plain"},
		{".parquet", ".parquet"},
		{"a/b.avro", "b"},
	} {
		if got := stem(c.path); got != c.want {
			t.Errorf("stem(%q) = %q, want %q", c.path, got, c.want)
		}
	}
	if got := stem("dir/"); got == "" || len(got) > maxName {
		t.Errorf("a path without a name gives %q", got)
	}
	long := stem("/" + strings.Repeat("n", 300) + ".parquet")
	if len(long)+longestExtension > maxName {
		t.Errorf("a long stem keeps %d bytes", len(long))
	}
}

func TestParseMoment(t *testing.T) {
	utc := func(h, m, s, ns int) time.Time { return time.Date(2026, 11, 30, h, m, s, ns, time.UTC) }
	for _, c := range []struct {
		text string
		want time.Time
	}{
		{"2026-11-30", utc(0, 0, 0, 0)},
		{"2026-11-30T02:53:19Z", utc(2, 53, 19, 0)},
		{"2026-11-30T02-53-19.123Z", utc(2, 53, 19, 123e6)},
		{"2026-11-30T02:53:19.123456789", utc(2, 53, 19, 123456789)},
		{"2026-11-30t02-53-19z", utc(2, 53, 19, 0)},
		{"2026-11-30 02:53:19", utc(2, 53, 19, 0)},
		{"2026-11-30T02:53:19+02:00", utc(0, 53, 19, 0)},
		{"2026-11-30T02-53-19-05-30", utc(8, 23, 19, 0)},
	} {
		if got, ok := parseMoment(c.text); !ok || !got.Equal(c.want) {
			t.Errorf("parseMoment(%q) = %v, %t; want %v", c.text, got, ok, c.want)
		}
	}
	for _, bad := range []string{"", "now", "2026", "2026-13-01", "2026-11-31", "2026-11-30T", "2026-11-30T02:53",
		"2026-11-30T25:00:00Z", "2026-11-30T02:53:19,5Z", "2026-11-30T02:53:19+0200", "x2026-11-30", "2026-11-30Z"} {
		if got, ok := parseMoment(bad); ok {
			t.Errorf("parseMoment(%q) = %v, want a refusal", bad, got)
		}
	}
}

func TestUnescapeName(t *testing.T) {
	for _, name := range []string{"plain", "a/b", "100%", "%2F", ".", "..", ".hidden", "a.b", "é", "\xff\xfe", "new\nline", "\x00", "a%zz", "%"} {
		if got, ok := unescapeName(escapeName(name)); !ok || got != name {
			t.Errorf("%q is shown as %q, which stands for %q, %v", name, escapeName(name), got, ok)
		}
	}
	for _, shown := range []string{".git", "..", "%", "%2", "%2f", "%zz", "%41", "a/b", "\n", "a%2Eb"} {
		if got, ok := unescapeName(shown); ok {
			t.Errorf("%q, which no name is shown as, stands for %q", shown, got)
		}
	}
}
