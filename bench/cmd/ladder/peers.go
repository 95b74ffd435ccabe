package main

import (
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/qps-ladder/qps-ladder/bench/run"
	"github.com/qps-ladder/qps-ladder/shared/harness"
)

func newPeers() *cobra.Command {
	var h measuring
	var names string
	cmd := &cobra.Command{
		Use:   "peers",
		Short: "Measure other Go servers, and a bare C loop, beside three stages",
		Long: `Measure net/http, fasthttp, gnet (with wildcat), nbio and a bare C loop beside
stage0, stage1 with -acceptor, stage5, and the summit, which is stage5 with what
exercises add to it (bench/variants/summit.yaml), each on the workloads that it can
serve.
The peers are a module of their own, bench/peers, which is built for this: Go may
have to fetch their libraries first.`,
		Args: noArguments,
		RunE: h.measures("peers", &names, func(j *job, _ []string) error {
			all, err := harness.Stages(j.root)
			if err != nil {
				return err
			}
			stages, err := j.build("0", "1", fmt.Sprint(len(all)-1))
			if err != nil {
				return err
			}
			stages[1] = run.WithFlag(stages[1], "-acceptor")
			j.progress.say("building the peers")
			peers, err := run.BuildPeers(j.ctx, j.root, j.bin)
			if err != nil {
				return err
			}
			bare, err := j.buildBareC()
			if err != nil {
				return err
			}
			if bare != nil {
				peers = append(peers, *bare)
			}
			variant, err := harness.Summit(j.root)
			if err != nil {
				return err
			}
			summit, err := run.BuildVariant(j.ctx, j.root, j.bin, variant)
			if err != nil {
				return err
			}
			last := stages[len(stages)-1]
			servers := append(append(stages, summit), peers...)
			j.Grid(servers, j.workloads, []run.Server{last, summit}, servers)
			return nil
		}),
	}
	h.flags(cmd, 5*time.Minute)
	workloadFlag(cmd, &names, "hello,pipelined,browser,json,body64k,churn", "what to send, separated by commas, or all")
	return cmd
}
