package main

import (
	"errors"
	"time"

	"github.com/spf13/cobra"

	"github.com/qps-ladder/qps-ladder/bench/run"
)

// networkWords say what lies between generator and server.
var networkWords = map[string]string{
	run.Loopback: "the loopback",
	run.Veth:     "a pair of virtual interfaces, the server in a network namespace of its own",
	run.Bridge:   "a bridge with translated addresses, as before a published port of a container",
}

func networkFlag(cmd *cobra.Command, network *string) {
	cmd.Flags().StringVar(network, "network", "", "what lies between: lo, veth or bridge; all but lo need root (default: lo)")
	completeFlag(cmd, "network", run.Networks...)
}

// usable says whether a network can be had, before anything is built.
func usable(network, generator string) error {
	if network == "" {
		return nil
	}
	if err := oneOf("network", network, run.Networks...); err != nil {
		return usage(err)
	}
	if network != run.Loopback && generator == run.Wrk {
		return usage(errors.New("wrk measures over the loopback only: use the embedded generator"))
	}
	return run.CheckNetwork(network)
}

func newNetwork() *cobra.Command {
	var h measuring
	var names string
	cmd := &cobra.Command{
		Use:   "network [stage...]",
		Short: "Measure stages over the loopback, a veth pair, and a bridge with NAT",
		Long: `Measure stages, 4 and 5 unless others are named, over three networks in the same
rounds: the loopback; a veth pair, with the server in a network namespace of its own;
and a bridge with translated addresses, as before a published port of a container.
It makes what that takes and removes it again, and needs root.`,
		ValidArgsFunction: completeStages(6),
		RunE: h.measures("network", &names, func(j *job, args []string) error {
			for _, network := range run.Networks {
				if err := usable(network, h.generator); err != nil {
					return err
				}
			}
			if len(args) == 0 {
				args = []string{"4", "5"}
			}
			servers, err := j.build(args...)
			if err != nil {
				return err
			}
			j.OverNetworks(servers, j.workloads)
			return nil
		}),
	}
	h.flags(cmd, 3*time.Minute)
	workloadFlag(cmd, &names, "hello,body64k", "what to send, separated by commas")
	return cmd
}
