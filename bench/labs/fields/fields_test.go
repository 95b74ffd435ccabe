package fields

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/qps-ladder/qps-ladder/bench/lab/input"
)

type way struct {
	name  string
	store Store
}

func ways() []way {
	return []way{{"map", &Map{}}, {"same-map", NewSameMap()}, {"scan", &Scan{}}, {"scan-all", &ScanAll{}}, {"slots", &Slots{}}}
}

// head returns n fields: a browser's, and from the fifteenth on those that proxies add.
func head(n int) (fields []Field) {
	for line := range strings.SplitSeq(strings.TrimSpace(string(input.Browser)), "\r\n") {
		if name, value, ok := strings.Cut(line, ": "); ok {
			fields = append(fields, Field{name, value})
		}
	}
	for i := len(fields); i < n; i++ {
		prefix := []string{"X-Forwarded-", "X-Trace-", "X-Edge-Location-"}[i%3]
		fields = append(fields, Field{fmt.Sprintf("%s%c%d", prefix, 'A'+i%26, i), "0123456789abcdef"})
	}
	return fields[:n]
}

func TestSame(t *testing.T) {
	twice := []Field{{"host", "first"}, {"COOKIE", "a"}, {"X-Other", "x"}, {"Host", "second"}, {"cookie", "b"}, {"x-other", "y"}}
	for _, fields := range [][]Field{head(1), head(64), head(14), twice, {}} { // fewer after more: nothing stays
		asked := append([]string{"Host", "Cookie", "X-Other", "X-Forwarded-S18", "Sec-Fetch-Mode", "No-Such-Field"}, Asked...)
		want := Map{}
		want.Fill(fields)
		for _, w := range ways() {
			w.store.Fill(head(64)) // what was there before
			w.store.Fill(fields)
			for _, name := range asked {
				require.Equal(t, want.Get(name), w.store.Get(name), "%s: %s of %d fields", w.name, name, len(fields))
			}
			require.Equal(t, Serve(&want, fields, Asked), Serve(w.store, fields, Asked), w.name)
		}
	}
	s := Scan{twice}
	require.Equal(t, "first", s.Get("Host"))
	require.Len(t, head(14), 14)
}

func BenchmarkFields(b *testing.B) {
	often := strings.Fields(strings.Repeat(strings.Join(Asked, " ")+" ", 8))
	for _, c := range []struct {
		name   string
		fields int
		asked  []string
	}{{"1", 1, Asked}, {"4", 4, Asked}, {"8", 8, Asked}, {"14", 14, Asked}, {"20", 20, Asked}, {"64", 64, Asked}, {"20-asked-32", 20, often}} {
		fields := head(c.fields)
		for _, w := range ways() {
			b.Run(c.name+"/"+w.name, func(b *testing.B) {
				b.ReportAllocs()
				total := 0
				for b.Loop() {
					total += Serve(w.store, fields, c.asked)
				}
				if c.fields > 2 && total == 0 {
					b.Fatal("nothing found")
				}
			})
		}
	}
}
