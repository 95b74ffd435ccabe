package main

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/qps-ladder/qps-ladder/bench/load"
	"github.com/qps-ladder/qps-ladder/bench/workload"
)

func newLoad() *cobra.Command {
	var (
		name                        string
		connections, pipeline, idle int
		hold                        bool
		asJSON                      jsonFile
		o                           load.Options
	)
	cmd := &cobra.Command{
		Use:   "load --target host:port",
		Short: "Drive one server, from this machine or another",
		Long: `Drive one server with a workload and print what came of it. The server may be
anywhere, so that other machines can be the clients.

A closed loop: each connection sends its next requests when all its answers are
there. With --rate an open one: requests go out when they are due, and latency
counts from that time, so that a server that stalls does not hide it.

Every answer is checked; a wrong one counts as an error, not as a request.
Exit code 1 when anything went wrong. Results of several machines can be put
together: see ladder merge.`,
		Example: "  ladder load --target 10.0.0.5:8080 --workload browser --duration 10s --json -",
		Args:    noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			w, err := workload.ByName(name)
			if err != nil {
				return usage(err)
			}
			if cmd.Flags().Changed("connections") {
				w.Connections = connections
			}
			if cmd.Flags().Changed("pipeline") {
				w.Pipeline = pipeline
			}
			if cmd.Flags().Changed("idle") {
				w.Idle = idle
			}
			o.Workload = w
			if o.Target == "" {
				return usage(errors.New("no server given: use --target host:port"))
			}
			if err := o.Check(); err != nil {
				return usage(err)
			}
			limits := load.ReadLimits()
			if err := limits.CheckDescriptors(w); err != nil {
				return fmt.Errorf("%w, or use --connections %d", err, limits.Room())
			}
			out := cmd.OutOrStdout()
			if !hold {
				for _, line := range limits.Capped(w, max(1, o.Threads), load.Loopback(o.Target) && len(o.Sources) == 0) {
					fmt.Fprintln(cmd.ErrOrStderr(), "ladder: "+line)
				}
			}
			input := bufio.NewReader(cmd.InOrStdin())
			if hold {
				o.AtRest = func() error { return handshake(out, input, "ready") }
				o.AtEnd = func() error { return handshake(out, input, "done") }
			}
			result, err := load.Run(cmd.Context(), o)
			if result.Requests > 0 || err == nil {
				printLoad(asJSON.text(cmd), result)
			}
			if writeErr := asJSON.write(cmd, result); err == nil {
				err = writeErr
			}
			// With --hold the parent reads what there is in the JSON.
			if err == nil && result.Failures() > 0 && !hold {
				err = fmt.Errorf("%d errors, see above", result.Failures())
			}
			return err
		},
	}
	f := cmd.Flags()
	f.StringVar(&o.Target, "target", "", "the server's address, host:port")
	workloadFlag(cmd, &name, workload.Hello, "what to send")
	f.IntVar(&connections, "connections", 0, "connections that send (default: the workload's)")
	f.IntVar(&pipeline, "pipeline", 0, "requests sent at once on a connection (default: the workload's)")
	f.IntVar(&idle, "idle", 0, "further connections that stay idle (default: the workload's)")
	f.IntVar(&o.Threads, "threads", 1, "event loops of the generator")
	f.DurationVar(&o.Warmup, "warmup", 200*time.Millisecond, "time before the measured part")
	f.DurationVar(&o.Duration, "duration", 2*time.Second, "of the measured part")
	f.DurationVar(&o.Timeout, "timeout", 10*time.Second, "how long to wait for connections at the start and answers at the end")
	f.Float64Var(&o.Rate, "rate", 0, "requests per second to send, whatever the answers do (default: as many as are answered)")
	f.StringSliceVar(&o.Sources, "source", nil, "IP addresses of this machine to connect from, in turns")
	f.IntVar(&o.ServerPID, "server-pid", 0, "a process on this machine whose CPU time is read as well")
	asJSON.flag(cmd, "the result (schema in bench/README.md)")
	f.BoolVar(&hold, "hold", false, "print \"ready\" before and \"done\" after the measured part, and wait for a line on standard input each time")
	return cmd
}

// handshake tells the parent that nothing is on its way, and waits until it has looked.
func handshake(out io.Writer, in *bufio.Reader, word string) error {
	if _, err := fmt.Fprintln(out, word); err != nil {
		return err
	}
	if _, err := in.ReadString('\n'); err != nil {
		return fmt.Errorf("standard input ended: --hold wants a line after %q", word)
	}
	return nil
}

func microseconds(ns int64) string { return time.Duration(ns).Round(100 * time.Nanosecond).String() }

func printLoad(out io.Writer, r load.Result) {
	fmt.Fprintf(out, "%s at %s: %d connections on %d threads, %d established, %d answered\n", r.Workload, r.Target, r.Connections+r.Idle, r.Threads, r.Established, r.Answered)
	fmt.Fprintf(out, "%.0f requests per second (%d in %.2f s)\n", r.RequestsPerSecond, r.Requests, r.Seconds)
	if r.Rate == 0 && r.Late > 0 {
		fmt.Fprintf(out, "%d more were answered after the end\n", r.Late)
	}
	if r.Rate > 0 {
		fmt.Fprintf(out, "%.0f per second were due; %d were answered late, %d never sent\n", r.Rate, r.Late, r.Unsent)
	}
	if r.SentLate > 0 || r.WokeLate > 0 {
		fmt.Fprintf(out, "the generator itself was up to %s behind its time and sent %d late though a connection was free: that is in the latencies, and not the server's\n", microseconds(r.WokeLate), r.SentLate)
	}
	if r.Sources > 1 && r.Overlap == 0 {
		fmt.Fprintf(out, "connections left from %d addresses\n", r.Sources)
	}
	fmt.Fprintf(out, "latency: p50 %s, p90 %s, p99 %s, p99.9 %s, longest %s\n", microseconds(r.Latency.P50), microseconds(r.Latency.P90), microseconds(r.Latency.P99), microseconds(r.Latency.P999), microseconds(r.Latency.Max))
	fmt.Fprintf(out, "generator: %.2f µs of CPU per request", r.ClientCPUNanosPerRequest/1e3)
	if r.ServerCPUNanosPerRequest > 0 {
		fmt.Fprintf(out, "; server: %.2f µs", r.ServerCPUNanosPerRequest/1e3)
	}
	fmt.Fprintln(out)
	if r.Reconnects > 0 {
		fmt.Fprintf(out, "%d reconnects\n", r.Reconnects)
	}
	if r.StaleDates > 0 {
		fmt.Fprintln(out, "the Date of the answers is not the time")
	}
	if r.Undated > 0 {
		fmt.Fprintln(out, "the answers have no Date")
	}
	for _, kinds := range []struct {
		label string
		of    map[string]uint64
	}{{"connect error", r.ConnectErrors}, {"error", r.Errors}} {
		for _, kind := range slices.Sorted(maps.Keys(kinds.of)) {
			fmt.Fprintf(out, "%s: %s: %d times\n", kinds.label, kind, kinds.of[kind])
		}
	}
}
