package main

import (
	"fmt"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/qps-ladder/qps-ladder/bench/report"
	"github.com/qps-ladder/qps-ladder/bench/results"
)

func newReport() *cobra.Command {
	var against string
	cmd := &cobra.Command{
		Use:   "report run.json …",
		Short: "Make the page, CSV and charts of runs anew from their JSON",
		Long: `Print the tables of earlier runs and write their HTML page, CSV and charts anew,
beside the JSON. --against says how far the ratios of another run agree.`,
		Args: some("no files given: ladder report bench/out/ladder.json"),
		RunE: func(cmd *cobra.Command, args []string) error {
			for _, path := range args {
				d, err := results.Read(path)
				if err != nil {
					return err
				}
				if against != "" {
					other, err := results.Read(against)
					if err != nil {
						return err
					}
					d.Against(other)
				}
				report.Text(cmd.OutOrStdout(), d)
				folder, file := filepath.Split(path)
				paths, err := report.WritePage(d, folder, strings.TrimSuffix(strings.TrimSuffix(file, ".json"), "-partial"))
				if err != nil {
					return err
				}
				for _, p := range paths {
					fmt.Fprintf(cmd.ErrOrStderr(), "written: %s\n", p)
				}
			}
			return nil
		},
	}
	cmd.Flags().StringVar(&against, "against", "", "JSON of another run whose ratios are compared")
	return cmd
}
