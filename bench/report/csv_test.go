package report

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// Every column of the CSV is a field of the JSON's rows, with the same value.
func TestCSVSaysWhatTheJSONSays(t *testing.T) {
	d := sample(7)
	for i := range d.Measurements {
		m := &d.Measurements[i]
		m.RequestsPerSecond *= 1 + float64(m.Round)/1000
		m.GCCycles, m.Resident, m.Reconnects, m.Unsent, m.Errors = 3, 12_345_678, 2, 1, map[string]uint64{"status 500": 1}
	}
	d.Build("")
	var out bytes.Buffer
	require.NoError(t, CSV(&out, d))
	lines, err := csv.NewReader(&out).ReadAll()
	require.NoError(t, err)
	require.Len(t, lines, len(d.Rows)+1)
	for i, r := range d.Rows {
		encoded, err := json.Marshal(r)
		require.NoError(t, err)
		var row map[string]any
		require.NoError(t, json.Unmarshal(encoded, &row))
		for column, name := range lines[0] {
			text := lines[i+1][column]
			field, part := name, "median"
			for _, suffix := range []string{"_low", "_high"} {
				if base, ok := strings.CutSuffix(name, suffix); ok {
					field, part = base, suffix[1:]
				}
			}
			var want any
			switch value := row[field].(type) {
			case nil:
				counters, _ := row["counters_per_request"].(map[string]any)
				want = counters[name]
				if name == "rounds" {
					want = row["requests_per_second"].(map[string]any)["rounds"]
				}
			case map[string]any:
				want = value[part]
				if name == "errors" {
					sum := 0.0
					for _, n := range value {
						sum += n.(float64)
					}
					want = sum
				}
			default:
				want = value
			}
			switch want := want.(type) {
			case nil:
				require.Contains(t, []string{"", "0"}, text, "%s: an empty field is not in the JSON", name)
			case float64:
				got, err := strconv.ParseFloat(text, 64)
				require.NoError(t, err, name)
				require.InEpsilon(t, want+1, got+1, 1e-6, name)
			case bool:
				require.Equal(t, strconv.FormatBool(want), text, name)
			default:
				require.Equal(t, want, text, name)
			}
		}
	}
}
