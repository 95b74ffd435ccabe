package main

import (
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/qps-ladder/qps-ladder/bench/run"
	"github.com/qps-ladder/qps-ladder/bench/workload"
)

func newPeers() *cobra.Command {
	var h how
	var names string
	cmd := &cobra.Command{
		Use:   "peers",
		Short: "Measure other Go servers, and a bare C loop, beside three stages",
		Long: `Measure net/http, fasthttp, gnet (with wildcat), nbio and a bare C loop beside
stage0, stage1 with -acceptor, and stage5, each on the workloads that it can serve.
The peers are a module of their own, bench/peers, which is built for this: Go may
have to fetch their libraries first.`,
		Args: noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			b, err := h.bench(cmd)
			if err != nil {
				return err
			}
			workloads, err := workload.List(names)
			if err != nil {
				return err
			}
			c, err := h.checkout()
			if err != nil {
				return err
			}
			if err := check(b); err != nil {
				return err
			}
			ctx := cmd.Context()
			progress := newProgress(cmd.ErrOrStderr())
			all, err := run.Stages(c.root)
			if err != nil {
				return err
			}
			stages, err := pick(ctx, progress, c, []string{"0", "1", fmt.Sprint(len(all) - 1)})
			if err != nil {
				return err
			}
			stages[1] = run.WithFlag(stages[1], "-acceptor")
			progress.say("building the peers")
			peers, err := run.BuildPeers(ctx, c.root, c.bin)
			if err != nil {
				return err
			}
			if s, ok, err := run.BuildBareC(ctx, c.root, c.bin); err != nil {
				return err
			} else if ok {
				peers = append(peers, s)
			} else {
				progress.say("no C compiler: the bare C loop is left out")
			}
			last := stages[len(stages)-1]
			servers := append(stages, peers...)
			b.Grid(servers, workloads, []run.Server{last}, servers)
			return finish(ctx, cmd.OutOrStdout(), progress, b, c, "peers")
		},
	}
	h.flags(cmd, 5*time.Minute)
	cmd.Flags().StringVar(&names, "workload", "hello,pipelined,browser,json,body64k", "what to send, separated by commas, or all: see ladder workloads")
	return cmd
}
