package site

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/qps-ladder/qps-ladder/bench/results"
	"github.com/qps-ladder/qps-ladder/bench/run"
	"github.com/qps-ladder/qps-ladder/bench/workload"
	"github.com/qps-ladder/qps-ladder/shared/harness"
)

// ablation is bench/variants/ablation.yaml, or another file of that form: stages with a part of their step taken back or put in,
// so that what the parts bring can be measured apart.
type ablation struct {
	Variants []variant   `yaml:"variants"`
	Also     []placement `yaml:"also"`
}

type placement struct {
	Server   string `yaml:"server"`
	Workload string `yaml:"workload"`
	With     string `yaml:"with"` // a server to compare it with; none when empty
}

type variant struct {
	harness.Variant `yaml:",inline"`

	Chapter string       `yaml:"chapter"` // the stage whose chapter shows it
	What    string       `yaml:"what"`
	Compare []comparison `yaml:"compare"`
}

type comparison struct {
	Workload string `yaml:"workload"`
	With     string `yaml:"with"`
}

// readAblation reads a file of bench/variants, by its name without ".yaml".
func readAblation(root, name string) (*ablation, error) {
	a := &ablation{}
	file := filepath.Join(root, "bench", "variants", name+".yaml")
	if err := readYAML(file, a); err != nil {
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
			return nil, fmt.Errorf("%s: variant %q needs chapter, stage, what and compare", file, v.Name)
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
	if err := harness.DecodeYAML(text, to); err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	return nil
}

// summitWorkloads are those on which chapter 9 shows what the exercises add up to.
var summitWorkloads = []string{"hello", "browser", "pipelined", "echo", "churn"}

// readSummit makes variants of the summit: each of its parts alone, called as its exercise is, then all up to each of them,
// with "+" before its name, the last of which is the summit itself. Each is compared with the stage.
func readSummit(root string) (*ablation, error) {
	summit, err := harness.Summit(root)
	if err != nil {
		return nil, err
	}
	a := &ablation{}
	add := func(name string, then []harness.Change) {
		v := variant{Variant: summit}
		v.Name, v.Then = name, then
		for _, w := range summitWorkloads {
			v.Compare = append(v.Compare, comparison{w, harness.ShortName(summit.Stage)})
		}
		a.Variants = append(a.Variants, v)
	}
	for i, part := range summit.Then {
		add(exerciseOf(part), summit.Then[i:i+1])
	}
	for i, part := range summit.Then {
		switch i {
		case 0: // which is the same as alone
		case len(summit.Then) - 1:
			add(summit.Name, summit.Then)
		default:
			add("+"+exerciseOf(part), summit.Then[:i+1])
		}
	}
	for _, name := range []string{harness.ShortName(summit.Stage), summit.Name} {
		a.Also = append(a.Also, placement{Server: name, Workload: "idle10k"})
	}
	return a, nil
}

// exerciseOf is the name of the exercise whose reference a change is: its folder.
func exerciseOf(c harness.Change) string {
	return path.Base(path.Dir(cmp.Or(c.Folder, c.Patch)))
}

// ablation builds variants and measures each beside what it is compared with, into a file of docs/data.
func (r *refreshing) ablation(a *ablation, file string) error {
	stages, err := harness.Stages(r.root)
	if err != nil {
		return err
	}
	fmt.Fprintf(os.Stderr, "building %d stages and %d variants\n", len(stages), len(a.Variants))
	all, err := run.BuildStages(r.ctx, r.root, r.work, stages)
	if err != nil {
		return err
	}
	blocking, err := run.BuildBlocking(r.ctx, r.root, r.work)
	if err != nil {
		return err
	}
	all = append(all, blocking...)
	for _, build := range []func(context.Context, string, string) (run.Server, bool, error){run.BuildBareC, run.BuildRingC} {
		c, ok, err := build(r.ctx, r.root, r.work)
		if err != nil {
			return err
		}
		if ok {
			all = append(all, c)
		}
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
			return server, fmt.Errorf("%s: there is no server %q", file, name)
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
		head, err := put(item.Server, item.Workload)
		if err != nil {
			return err
		}
		if item.With == "" {
			continue
		}
		base, err := put(item.With, item.Workload)
		if err != nil {
			return err
		}
		bench.Compare(results.Pair, item.Workload, head, base, results.RequestsPerSecond, results.ServerCPU, results.LatencyP50)
	}
	bench.FloorOfEach()
	d, err := bench.Run(r.ctx)
	fmt.Fprintln(os.Stderr)
	if err != nil {
		return err
	}
	d.Command = "make docs-refresh"
	d.Method.Revision = run.Revision(r.root)
	return writeData(d, r.data(file))
}
