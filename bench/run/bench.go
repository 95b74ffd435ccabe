// Package run starts servers and generators as processes of their own, drives
// them round after round, and gathers what they say.
//
// What a generator does is package load's, what is made of the rounds package results', how it is shown package report's.
package run

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"time"

	"github.com/qps-ladder/qps-ladder/bench/results"
	"github.com/qps-ladder/qps-ladder/bench/stats"
	"github.com/qps-ladder/qps-ladder/bench/workload"
	"github.com/qps-ladder/qps-ladder/shared/netpoll"
)

// The generators.
const (
	Embedded = "embedded"
	Wrk      = "wrk"
)

// Bench is one run: what is measured, and how. Fill it in, then call Run once.
type Bench struct {
	Items  []Item
	Ratios []results.Ratio // what is to be compared; the figures come later

	// Rounds is how many are to be done; with 0 as many as should fit in Time, but at least
	// stats.MinimumRounds: Run decides it before the first, so that no figure has a say in it.
	Rounds int
	Time   time.Duration

	// Half are workloads that need no more than every other round, but at least
	// stats.MinimumRounds: the others have the time.
	Half []string

	Warmup   time.Duration
	Duration time.Duration // of each measurement

	Rate float64 // requests per second, for an open loop; 0 for a closed one

	Layout    string // "" for the one that suits
	Workers   int    // 0: one for each of the server's CPUs
	Generator string
	Command   string            // path of this command: the generator is started from it
	Seed      uint64            // of the order within the rounds
	Published results.Published // none if it is left away

	Remarks []string // for the notes: what this machine caps, see Fit

	Progress func(Progress) // may be nil

	// Brief leaves the ladder at hello, without the stages' targets.
	Brief bool

	place Place
	// NoRepeat leaves out the repeat at a fixed rate of what was compared where the server was not the limit.
	NoRepeat bool

	networks      map[string]*network // those that are open, by their kind
	presence      *presence
	showPublished bool // what is published stands beside the figures
}

// Progress tells what is about to be measured.
type Progress struct {
	Round, Rounds int
	Item          Item
	Done, Items   int           // measurements of this round
	Left          time.Duration // an estimate, 0 when there is none yet
}

// Prepare chooses the CPUs; Run calls it if nobody has.
func (b *Bench) Prepare() error {
	var err error
	if b.place, err = Locate(b.Layout); err != nil {
		return err
	}
	if b.Workers == 0 {
		b.Workers = len(b.place.Server)
	}
	return nil
}

// CPUs are those that servers run on, once Prepare has chosen them.
func (b *Bench) CPUs() []int { return b.place.Server }

// Machine describes where this process runs.
func Machine() results.Machine {
	m := results.Machine{Go: runtime.Version(), LoadAverage: loadAverage(), CPUs: runtime.NumCPU()}
	describe(&m)
	return m
}

// Where says on which CPUs server and generator run, once Prepare has chosen them.
func (b *Bench) Where() string {
	var m results.Machine
	describe(&m)
	return b.method().Where(m.Virtual)
}

func (b *Bench) method() results.Method {
	m := results.Method{
		Layout: b.place.Layout, ServerCPUs: b.place.Server, LoadCPUs: b.place.Load, Cores: b.place.cores, Workers: b.Workers,
		LoadThreads: len(b.place.Load), Generator: b.Generator, Seconds: b.Duration.Seconds(), Warmup: b.Warmup.Seconds(), Seed: b.Seed,
		Rate: b.Rate, UserSystem: results.Ticks,
	}
	if accounted() {
		m.UserSystem = results.Accounted
	}
	return m
}

// Run does the rounds. It returns the document with all that was measured even
// when it ends early, and then the reason as well.
func (b *Bench) Run(ctx context.Context) (*results.Document, error) {
	d := &results.Document{
		Schema: results.Schema, Version: results.Version, Created: time.Now().UTC().Truncate(time.Second), Ended: results.Complete,
		Machine: results.Machine{Go: runtime.Version(), LoadAverage: loadAverage()},
		Ratios:  b.Ratios,
	}
	if b.place.Layout == "" {
		if err := b.Prepare(); err != nil {
			return d, err
		}
	}
	describe(&d.Machine)
	cpus, err := netpoll.CPUs()
	if err != nil {
		return d, err
	}
	d.Machine.CPUs = len(cpus)
	if err := useCPUs(b.place.Own); err != nil {
		return d, fmt.Errorf("cannot leave the measured CPUs alone: %w", err)
	}
	defer useCPUs(cpus)
	d.Method = b.method()
	closeNetworks, err := b.openNetworks()
	defer func() {
		if closeErr := closeNetworks(); closeErr != nil {
			b.Remarks = append(b.Remarks, "A network was not removed: "+firstLine(closeErr.Error()))
		}
	}()
	if err != nil {
		return d, err
	}
	b.Rounds, _ = b.Plan()
	b.list(d)
	begin := time.Now()
	err = b.rounds(ctx, d, begin)
	if done := d.Method.Rounds; err == nil && b.repeat(d) {
		b.list(d)
		err = b.rounds(ctx, d, time.Now())
		d.Method.Rounds = done
	}
	d.Method.Took = time.Since(begin).Seconds()
	switch {
	case Ended(err):
		d.Ended = "interrupted"
	case err != nil:
		d.Ended = firstLine(err.Error())
	}
	b.remarkCompany()
	d.Remarks = b.Remarks
	note := ""
	if b.showPublished {
		note = b.Published.Note
	}
	d.Build(note)
	return d, err
}

// openNetworks opens those that servers are in.
func (b *Bench) openNetworks() (closeAll func() error, err error) {
	b.networks = map[string]*network{}
	closeAll = func() (err error) {
		for _, n := range b.networks {
			err = errors.Join(err, n.close())
		}
		return err
	}
	for _, item := range b.Items {
		kind := item.Server.Network
		if kind == "" || kind == Loopback || b.networks[kind] != nil {
			continue
		}
		n, err := openNetwork(kind)
		if err != nil {
			return closeAll, err
		}
		b.networks[kind] = n
	}
	return closeAll, nil
}

// list names the servers and workloads in the order of their first appearance.
func (b *Bench) list(d *results.Document) {
	servers, workloads := map[string]bool{}, map[string]bool{}
	for _, s := range d.Servers {
		servers[s.Name] = true
	}
	for _, item := range b.Items {
		if s := item.Server; !servers[s.Name] {
			servers[s.Name] = true
			d.Servers = append(d.Servers, results.Server{Name: s.Name, Published: b.Published.Of(s.Name), Counters: s.Admin, Workers: s.Workers})
		}
		if w := item.Workload; !workloads[item.name()] {
			workloads[item.name()] = true
			repeats := ""
			if item.Rate > 0 {
				repeats = w.Name
			}
			d.Workloads = append(d.Workloads, results.Workload{
				Name: item.name(), Rate: item.Rate, Repeats: repeats, Summary: w.Summary, Connections: w.Connections, Pipeline: w.Pipeline, Idle: w.Idle, Reconnect: w.Reconnect,
				RequestBytes: len(w.Request), BodyBytes: len(w.Body), Rounds: b.roundsOf(w.Name),
			})
		}
	}
}

func (b *Bench) rounds(ctx context.Context, d *results.Document, begin time.Time) error {
	random := rand.New(rand.NewPCG(b.Seed, 0))
	for round := 1; round <= b.Rounds; round++ {
		items := order(b.due(round), random)
		for i, item := range items {
			if err := ctx.Err(); err != nil {
				return err
			}
			b.tell(round, i, items, time.Since(begin))
			m, err := b.measure(ctx, item)
			if err != nil {
				return err
			}
			m.Round, m.Order = round, i+1
			d.Measurements = append(d.Measurements, m)
		}
		d.Method.Rounds = round
	}
	return nil
}

// roundsOf is in how many rounds a workload is measured.
func (b *Bench) roundsOf(workload string) int {
	if !slices.Contains(b.Half, workload) {
		return b.Rounds
	}
	return min(b.Rounds, max(stats.MinimumRounds, (b.Rounds+1)/2))
}

// Fewer is in how many rounds the workloads of Half are measured, once it is known how many there
// are: see Plan. It is 0 without such workloads.
func (b *Bench) Fewer() int {
	p := *b
	p.Rounds, _ = b.Plan()
	for _, item := range b.Items {
		if slices.Contains(b.Half, item.Workload.Name) {
			return p.roundsOf(item.Workload.Name)
		}
	}
	return 0
}

// due are the items of a round, from 1. What is not in every round is spread evenly.
func (b *Bench) due(round int) (items []Item) {
	for _, item := range b.Items {
		n := b.roundsOf(item.Workload.Name)
		if round*n/b.Rounds > (round-1)*n/b.Rounds {
			items = append(items, item)
		}
	}
	return items
}

// expected is how long items will take, put together from their parts.
func (b *Bench) expected(items []Item) (all time.Duration) {
	const (
		startAndStop = 60 * time.Millisecond  // of a server and a generator
		connect      = 100 * time.Microsecond // for each connection, its end included
	)
	for _, item := range items {
		measured := b.duration(item.Workload)
		if cmp.Or(item.Generator, b.Generator) == Wrk {
			measured = WholeSeconds(b.Duration)
		}
		all += b.Warmup + measured + startAndStop + time.Duration(item.Workload.Total())*connect
	}
	return all
}

// Plan is how many rounds there will be, and how long all of them will take,
// on a machine that has nothing else to do.
func (b *Bench) Plan() (rounds int, all time.Duration) {
	if len(b.Items) == 0 {
		return b.Rounds, 0
	}
	p := *b
	if b.Rounds == 0 {
		p.Rounds = stats.MinimumRounds
		for p.expectedFrom(1) < b.Time { // one more than fits
			p.Rounds++
		}
		if p.expectedFrom(1) > b.Time {
			p.Rounds = max(stats.MinimumRounds, p.Rounds-1)
		}
	}
	return p.Rounds, p.expectedFrom(1)
}

// expectedFrom is how long the rounds from one on will take.
func (b *Bench) expectedFrom(round int) (all time.Duration) {
	for ; round <= b.Rounds; round++ {
		all += b.expected(b.due(round))
	}
	return all
}

// tell reports progress. What is left takes as much longer than expected as what is done did.
func (b *Bench) tell(round, done int, items []Item, took time.Duration) {
	if b.Progress == nil {
		return
	}
	left := b.expectedFrom(round) - b.expected(items[:done])
	if before := b.expectedFrom(1) - left; round > 1 {
		left = time.Duration(float64(left) * float64(took) / float64(before))
	}
	b.Progress(Progress{Round: round, Rounds: b.Rounds, Item: items[done], Done: done, Items: len(items), Left: left})
}

// order shuffles a round: the workloads, and within each the servers. Those
// that are compared stay close together in time, and none is always first.
func order(items []Item, random *rand.Rand) []Item {
	var names []string
	groups := map[string][]Item{}
	for _, item := range items {
		name := item.name()
		if groups[name] == nil {
			names = append(names, name)
		}
		groups[name] = append(groups[name], item)
	}
	random.Shuffle(len(names), func(i, j int) { names[i], names[j] = names[j], names[i] })
	out := make([]Item, 0, len(items))
	for _, name := range names {
		group := groups[name]
		random.Shuffle(len(group), func(i, j int) { group[i], group[j] = group[j], group[i] })
		out = append(out, group...)
	}
	return out
}

// loadThreads is how many loops the generator gets.
func (b *Bench) loadThreads(w workload.Workload) int { return min(len(b.place.Load), w.Connections) }

// duration is how long w is measured. What idle connections cost in memory is
// there at once, and the rest of that workload is not what it is for.
func (b *Bench) duration(w workload.Workload) time.Duration {
	const enough = 100 * time.Millisecond
	if w.Idle > 0 {
		return min(b.Duration, enough)
	}
	// Every connection has to have its turn a few times.
	const crowd, turns = 2000, time.Second
	if w.Connections > crowd {
		return max(b.Duration, turns)
	}
	return b.Duration
}
