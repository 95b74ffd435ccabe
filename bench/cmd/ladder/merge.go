package main

import (
	"encoding/json"
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"

	"github.com/qps-ladder/qps-ladder/bench/load"
)

func newMerge() *cobra.Command {
	var asJSON jsonFile
	cmd := &cobra.Command{
		Use:   "merge a.json b.json …",
		Short: "Put results of several load generators into one",
		Long: `Put the results of "ladder load --json" from several machines, which drove one
server at the same time, into one: rates and counts add up, and percentiles are
read from all latencies together. "-" is standard input.`,
		Example: "  ladder merge from-alice.json from-bob.json",
		Args:    some("no files given: ladder merge a.json b.json"),
		RunE: func(cmd *cobra.Command, args []string) error {
			var results []load.Result
			for _, path := range args {
				r, err := readResults(path, cmd.InOrStdin())
				if err != nil {
					return err
				}
				results = append(results, r...)
			}
			merged, err := load.Merge(results)
			if err != nil {
				return err
			}
			if err := asJSON.write(cmd, merged); err != nil {
				return err
			}
			out := asJSON.text(cmd)
			for i, r := range results {
				fmt.Fprintf(out, "generator %d: %.0f requests per second, %d of %d connections, p50 %s, p99 %s\n", i+1, r.RequestsPerSecond, r.Established, r.Connections+r.Idle, microseconds(r.Latency.P50), microseconds(r.Latency.P99))
			}
			fmt.Fprintf(out, "\ntogether: ")
			printLoad(out, merged)
			const together = 0.9
			if 0 < merged.Overlap && merged.Overlap < together {
				fmt.Fprintf(out, "warning: all generators measured at the same time for %.0f%% of their time only, so that the rates do not add up: start them together, for longer\n", 100*merged.Overlap)
			}
			if merged.Failures() > 0 {
				return fmt.Errorf("%d errors, see above", merged.Failures())
			}
			return nil
		},
	}
	asJSON.flag(cmd, "the result, as ladder load does,")
	return cmd
}

// readResults reads all results in a file.
func readResults(path string, input io.Reader) (out []load.Result, err error) {
	if path != "-" {
		f, err := os.Open(path)
		if err != nil {
			return nil, err
		}
		defer f.Close()
		input = f
	}
	decoder := json.NewDecoder(input)
	for {
		var r load.Result
		if err := decoder.Decode(&r); err == io.EOF {
			break
		} else if err != nil {
			return nil, fmt.Errorf("%s holds no result of ladder load --json: %w", path, err)
		}
		if r.Workload == "" || r.Histogram == "" {
			return nil, fmt.Errorf("%s holds no result of ladder load --json", path)
		}
		out = append(out, r)
	}
	if len(out) == 0 {
		return nil, fmt.Errorf("%s is empty", path)
	}
	return out, nil
}
