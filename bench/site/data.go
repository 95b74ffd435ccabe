package site

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/qps-ladder/qps-ladder/bench/profile"
	"github.com/qps-ladder/qps-ladder/bench/results"
	"github.com/qps-ladder/qps-ladder/bench/stats"
)

// prune takes out of docs/data what no page reads. A document that was just measured still has its
// rounds: every page and README is made from it once, which leaves the ratios that were asked for
// (see dataFiles.ratio), and then the rounds go. As long as the pages do not build they stay, since
// a ratio that is asked for with a slip of the pen could not be had any more.
func prune(root string) error {
	b, err := newBuilder(root)
	if err != nil {
		return err
	}
	whole := map[string]*results.Document{}
	for _, r := range append(slices.Collect(maps.Values(b.results.named)), b.results) {
		for i, d := range r.documents {
			if len(d.Measurements) > 0 {
				whole[r.files[i]] = d
			}
		}
	}
	if len(whole) == 0 {
		return nil
	}
	if _, err := b.build(); err != nil {
		return fmt.Errorf("docs/data keeps every round until the pages build and make docs-readmes is called: %w", err)
	}
	if err := b.checkMarks(); err != nil {
		return err
	}
	for file, d := range whole {
		d.Measurements = nil
		for i := range d.Rows {
			r := &d.Rows[i]
			r.UserCPUMicros, r.SystemCPUMicros, r.UserShare, r.HeapPerConnection = stats.Interval{}, stats.Interval{}, stats.Interval{}, stats.Interval{}
			r.LoopConnections, r.Resident, r.RequestsPerWait = nil, 0, 0
		}
		if err := writeData(d, filepath.Join(root, "docs", "data", file)); err != nil {
			return err
		}
	}
	return nil
}

// writeData writes JSON that is short and yet can be compared line by line. What is zero or
// empty is left out, which is read as the same; fractions have six digits; an element of a list
// is a line.
func writeData(v any, path string) error {
	b, err := json.Marshal(v)
	if err != nil {
		return err
	}
	decoder := json.NewDecoder(bytes.NewReader(b))
	decoder.UseNumber()
	var fields map[string]any
	if err := decoder.Decode(&fields); err != nil {
		return err
	}
	var out []string
	for _, name := range slices.Sorted(maps.Keys(fields)) {
		value := slim(name, fields[name])
		if value == nil {
			continue
		}
		list, ok := value.([]any)
		if !ok {
			out = append(out, fmt.Sprintf("%q: %s", name, line(value)))
			continue
		}
		lines := make([]string, len(list))
		for i, element := range list {
			lines[i] = line(element)
		}
		out = append(out, fmt.Sprintf("%q: [\n%s\n]", name, strings.Join(lines, ",\n")))
	}
	return os.WriteFile(path, []byte("{\n"+strings.Join(out, ",\n")+"\n}\n"), 0o644)
}

// line is a value as JSON decoded it, in a line.
func line(value any) string {
	b, err := json.Marshal(value)
	if err != nil {
		panic(err) // what was decoded can be encoded
	}
	return string(b)
}

// slim is a value of JSON without what writeData leaves out, nil if nothing is left.
func slim(name string, value any) any {
	const counters = "counters_per_request" // whose zeros say that there is such a counter
	switch v := value.(type) {
	case map[string]any:
		delete(v, "confidence") // that of the order statistics of so many rounds
		for key, x := range v {
			if v[key] = slim(key, x); v[key] != nil {
				continue
			}
			if delete(v, key); name == counters {
				v[key] = 0
			}
		}
		if len(v) == 0 {
			return nil
		}
	case []any:
		for i, x := range v {
			if x = slim("", x); x != nil { // an element keeps its place
				v[i] = x
			}
		}
		if len(v) == 0 {
			return nil
		}
	case json.Number:
		f, err := v.Float64()
		switch {
		case err == nil && f == 0:
			return nil
		case err == nil && strings.ContainsAny(v.String(), ".e"):
			return json.Number(strconv.FormatFloat(f, 'g', 6, 64))
		}
	case string:
		if v == "" {
			return nil
		}
	case bool:
		if !v {
			return nil
		}
	}
	return value
}

// readProfile reads docs/data/profiles/<stage>.folded: a line that begins with #
// says what it is, the others hold a stack and its time.
func readProfile(root, stage string) (*profile.Outline, error) {
	path := filepath.Join(root, "docs", "data", "profiles", stage+".folded")
	b, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("no profile of %s: %w; make docs-refresh records it", stage, err)
	}
	o := &profile.Outline{Time: map[string]int64{}}
	for line := range strings.Lines(string(b)) {
		line = strings.TrimSpace(line)
		if about, ok := strings.CutPrefix(line, "# "); ok {
			// What a request cost while somebody looked on is no price to quote: the ladder
			// measures that.
			o.About = strings.Join(slices.DeleteFunc(strings.Split(about, "; "), func(s string) bool { return strings.Contains(s, "of server CPU per request") }), "; ")
			continue
		}
		i := strings.LastIndexByte(line, ' ')
		if i < 0 {
			return nil, fmt.Errorf("%s: %q is no stack with its time", path, line)
		}
		n, err := strconv.ParseInt(line[i+1:], 10, 64)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
		o.Time[line[:i]] += n
	}
	if len(o.Time) == 0 {
		return nil, fmt.Errorf("%s holds no sample", path)
	}
	return o, nil
}

// writeProfile writes what readProfile reads: the frames that can be seen in a page. What is too
// narrow for that is counted for its caller.
func writeProfile(o *profile.Outline, path string) error {
	const tooNarrow = 0.004 // of the whole
	var whole int64
	within := map[string]int64{} // by the beginning of a stack
	for stack, n := range o.Time {
		whole += n
		for i := range stack + ";" {
			if i == len(stack) || stack[i] == ';' {
				within[stack[:i]] += n
			}
		}
	}
	drawn := map[string]int64{}
	for stack, n := range o.Time {
		for float64(within[stack]) < tooNarrow*float64(whole) && strings.Contains(stack, ";") {
			stack = stack[:strings.LastIndexByte(stack, ';')]
		}
		drawn[stack] += n
	}
	var out strings.Builder
	fmt.Fprintf(&out, "# %s\n", o.About)
	for _, stack := range slices.Sorted(maps.Keys(drawn)) {
		fmt.Fprintf(&out, "%s %d\n", stack, drawn[stack])
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	return os.WriteFile(path, []byte(out.String()), 0o644)
}
