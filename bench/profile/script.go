package profile

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/google/pprof/profile"
)

// unknown is what has no name.
const unknown = "[unknown]"

// kernelImage is what perf calls the kernel itself; modules stand in brackets too.
const kernelImage = "[kernel.kallsyms]"

const maxLine = 1 << 20 // of what perf script prints: a frame with a long name

var errNoSamples = errors.New("the profile holds no sample: the server was idle, or the time too short")

// builder puts a profile together, one stack at a time.
type builder struct {
	p         *profile.Profile
	mappings  map[string]*profile.Mapping
	functions map[string]*profile.Function
	locations map[frameKey]*profile.Location
	samples   map[string]*profile.Sample
	inliner   *inliner
}

type frameKey struct {
	image   string
	address uint64
	leaf    bool
	name    string
}

// parseScript reads what `perf script -F tid,period,event,ip,sym,dso` prints:
// for each sample a line that says what it weighs, and a line for each frame,
// leaf first. A weight is in nanoseconds for a clock, else in events.
func parseScript(in io.Reader, event string, inliner *inliner) (*profile.Profile, error) {
	unit := "nanoseconds"
	if event != softwareEvent {
		unit = "count"
	}
	b := &builder{
		p: &profile.Profile{
			SampleType: []*profile.ValueType{{Type: "samples", Unit: "count"}, {Type: "cpu", Unit: unit}},
			PeriodType: &profile.ValueType{Type: "cpu", Unit: unit},
			Period:     1,
		},
		mappings: map[string]*profile.Mapping{}, functions: map[string]*profile.Function{},
		locations: map[frameKey]*profile.Location{}, samples: map[string]*profile.Sample{},
		inliner: inliner,
	}
	var stack []*profile.Location
	var weight int64
	inner := "" // the innermost function of the program, until the one outside it is there
	flush := func() {
		if weight > 0 && len(stack) > 0 {
			b.add(stack, weight)
		}
		stack, weight, inner = nil, 0, ""
	}
	s := bufio.NewScanner(in)
	s.Buffer(nil, maxLine)
	for s.Scan() {
		line := s.Text()
		switch {
		case strings.TrimSpace(line) == "":
			flush()
		case weight == 0:
			w, err := sampleWeight(line)
			if err != nil {
				return nil, err
			}
			weight = w
		default:
			f, err := parseFrame(line)
			if err != nil {
				return nil, err
			}
			if f.name == "runtime.goexit.abi0" || f.name == "runtime.goexit" {
				continue // the bottom of every goroutine; the Go profile leaves it out as well
			}
			if !isKernelImage(f.image) && inliner != nil {
				if inner == "" {
					inner = f.name
				} else if inner != settled {
					if name := inliner.skipped(inner, f.address, f.name); name != "" {
						stack = append(stack, b.location(frameKey{image: f.image, name: name}))
					}
					inner = settled
				}
			}
			f.leaf = len(stack) == 0
			stack = append(stack, b.location(f))
		}
	}
	if err := s.Err(); err != nil {
		return nil, fmt.Errorf("what perf recorded cannot be read: %w", err)
	}
	flush()
	if len(b.p.Sample) == 0 {
		return nil, errNoSamples
	}
	return b.p, b.p.CheckValid()
}

// sampleWeight reads a sample's first line: "123 500250 cpu-clock:".
func sampleWeight(line string) (int64, error) {
	fields := strings.Fields(line)
	if len(fields) >= 3 {
		if w, err := strconv.ParseInt(fields[1], 10, 64); err == nil && w > 0 {
			return w, nil
		}
	}
	return 0, fmt.Errorf("what perf printed is not understood: %.80q", line)
}

// settled stands for a name when there is nothing left to ask for.
const settled = "-"

// parseFrame reads a frame's line: "ffffffff8206e8cb tcp_sendmsg ([kernel.kallsyms])".
func parseFrame(line string) (f frameKey, err error) {
	digits, rest, _ := strings.Cut(strings.TrimSpace(line), " ")
	f.address, err = strconv.ParseUint(digits, 16, 64)
	open := strings.LastIndex(rest, " (")
	if err != nil || open < 0 || !strings.HasSuffix(rest, ")") {
		return f, fmt.Errorf("what perf printed is not understood: %.80q", line)
	}
	f.name, f.image = rest[:open], rest[open+2:len(rest)-1]
	if f.image == unknown && f.address>>63 == 1 {
		f.image = kernelImage // the upper half of addresses is the kernel's
	}
	return f, nil
}

// location is the entry for a frame, with a line for each inlined function too.
// One without an address is known by its name only.
func (b *builder) location(f frameKey) *profile.Location {
	if l := b.locations[f]; l != nil {
		return l
	}
	l := &profile.Location{ID: uint64(len(b.p.Location) + 1), Mapping: b.mapping(f.image), Address: f.address}
	names := []string{strings.TrimSuffix(f.name, ".abi0")}
	if !isKernelImage(f.image) && b.inliner != nil && f.address != 0 {
		names = b.inliner.expand(f.address, f.leaf, f.name)
	}
	for _, name := range names {
		l.Line = append(l.Line, profile.Line{Function: b.function(name)})
	}
	b.locations[f] = l
	b.p.Location = append(b.p.Location, l)
	return l
}

func (b *builder) mapping(image string) *profile.Mapping {
	m := b.mappings[image]
	if m == nil {
		m = &profile.Mapping{ID: uint64(len(b.p.Mapping) + 1), File: image, HasFunctions: true, HasInlineFrames: true}
		b.mappings[image] = m
		b.p.Mapping = append(b.p.Mapping, m)
	}
	return m
}

func (b *builder) function(name string) *profile.Function {
	f := b.functions[name]
	if f == nil {
		f = &profile.Function{ID: uint64(len(b.p.Function) + 1), Name: name, SystemName: name}
		b.functions[name] = f
		b.p.Function = append(b.p.Function, f)
	}
	return f
}

// add counts one sample.
func (b *builder) add(stack []*profile.Location, weight int64) {
	var key strings.Builder
	for _, l := range stack {
		key.WriteString(strconv.FormatUint(l.ID, 36))
		key.WriteByte(' ')
	}
	s := b.samples[key.String()]
	if s == nil {
		s = &profile.Sample{Location: stack, Value: []int64{0, 0}}
		b.samples[key.String()] = s
		b.p.Sample = append(b.p.Sample, s)
	}
	s.Value[0]++
	s.Value[1] += weight
}

// isKernelImage tells whether code lies in the kernel or one of its modules.
func isKernelImage(image string) bool {
	return strings.HasPrefix(image, "[") && image != "[vdso]" && image != unknown && image != "[heap]" && image != "[stack]"
}
