package site

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/qps-ladder/qps-ladder/bench/results"
	"github.com/qps-ladder/qps-ladder/bench/run"
	"github.com/qps-ladder/qps-ladder/bench/workload"
	"github.com/qps-ladder/qps-ladder/shared/harness"
)

// ablation is bench/variants/ablation.yaml: stages with a part of their step taken back or put in,
// so that what the parts bring can be measured apart.
type ablation struct {
	Variants []variant `yaml:"variants"`
	Also     []struct {
		Server   string `yaml:"server"`
		Workload string `yaml:"workload"`
	} `yaml:"also"`
}

type variant struct {
	harness.Variant `yaml:",inline"`

	Chapter string `yaml:"chapter"` // the stage whose chapter shows it
	What    string `yaml:"what"`
	Compare []struct {
		Workload string `yaml:"workload"`
		With     string `yaml:"with"`
	} `yaml:"compare"`
}

func readAblation(root string) (*ablation, error) {
	a := &ablation{}
	path := filepath.Join(root, "bench", "variants", "ablation.yaml")
	if err := readYAML(path, a); err != nil {
		return nil, err
	}
	compared := map[string]bool{}
	for _, v := range a.Variants {
		for _, c := range v.Compare {
			compared[v.Name], compared[c.With] = true, true
		}
	}
	for _, v := range a.Variants {
		if v.Name == "" || v.Stage == "" || v.Chapter == "" || v.What == "" || !compared[v.Name] {
			return nil, fmt.Errorf("%s: variant %q needs chapter, stage, what and compare", path, v.Name)
		}
	}
	return a, nil
}

// readYAML reads a file that has no fields but those of to.
func readYAML(path string, to any) error {
	b, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	return decodeYAML(path, b, to)
}

// decodeYAML reads text of the file at path, which has no fields but those of to.
func decodeYAML(path string, text []byte, to any) error {
	decoder := yaml.NewDecoder(bytes.NewReader(text))
	decoder.KnownFields(true)
	if err := decoder.Decode(to); err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	return nil
}

// ablation builds the variants and measures each beside what it is compared with.
func (r *refreshing) ablation() error {
	stages, err := harness.Stages(r.root)
	if err != nil {
		return err
	}
	a, err := readAblation(r.root)
	if err != nil {
		return err
	}
	fmt.Fprintf(os.Stderr, "building %d stages and %d variants\n", len(stages), len(a.Variants))
	all, err := run.BuildStages(r.ctx, r.root, r.work, stages)
	if err != nil {
		return err
	}
	peers, err := run.BuildPeers(r.ctx, r.root, r.work)
	if err != nil {
		return err
	}
	for _, p := range peers {
		p.Name = strings.ReplaceAll(p.Name, "/", "") // in a key a slash stands between two servers
		all = append(all, p)
	}
	for _, v := range a.Variants {
		s, err := run.BuildVariant(r.ctx, r.root, r.work, v.Variant)
		if err != nil {
			return err
		}
		all = append(all, s)
	}

	bench := &run.Bench{
		Rounds: r.Rounds, Time: r.Time, Warmup: 150 * time.Millisecond, Duration: 400 * time.Millisecond,
		Generator: run.Embedded, Command: r.command, Seed: uint64(time.Now().UnixNano()),
		Progress: func(p run.Progress) {
			fmt.Fprintf(os.Stderr, "\rround %d of %d, %d of %d: %s on %s          ", p.Round, p.Rounds, p.Done+1, p.Items, p.Item.Server.Name, p.Item.Workload.Name)
		},
	}
	if r.Quick {
		bench.Warmup, bench.Duration = 60*time.Millisecond, 150*time.Millisecond
	}
	names := dataFiles{stages: stages}
	put := func(name, on string) (server run.Server, err error) {
		name = names.server(name)
		i := slices.IndexFunc(all, func(s run.Server) bool { return s.Name == name })
		if i < 0 {
			return server, fmt.Errorf("ablation.yaml: there is no server %q", name)
		}
		w, err := workload.ByName(on)
		if err != nil {
			return server, err
		}
		if !slices.ContainsFunc(bench.Items, func(i run.Item) bool { return i.Server.Name == name && i.Workload.Name == on }) {
			bench.Items = append(bench.Items, run.Item{Server: all[i], Workload: w})
		}
		return all[i], nil
	}
	for _, v := range a.Variants {
		for _, c := range v.Compare {
			base, err := put(c.With, c.Workload)
			if err != nil {
				return err
			}
			head, err := put(v.Name, c.Workload)
			if err != nil {
				return err
			}
			bench.Compare(results.Pair, c.Workload, head, base, results.RequestsPerSecond, results.ServerCPU)
		}
	}
	for _, item := range a.Also {
		if _, err := put(item.Server, item.Workload); err != nil {
			return err
		}
	}
	bench.FloorOfEach()
	d, err := bench.Run(r.ctx)
	fmt.Fprintln(os.Stderr)
	if err != nil {
		return err
	}
	d.Command = "make docs-refresh"
	d.Method.Revision = run.Revision(r.root)
	return writeData(d, r.data("ablation.json"))
}
