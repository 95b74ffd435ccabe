package site

import (
	"bufio"
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"html"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// A profile says where a stage's CPU time went: stacks, root first, and the
// time in each.
type profile struct {
	about  string           // what was recorded, in a line
	stacks map[string]int64 // "main.(*loop).run;netpoll.Send;[kernel] sendto" to nanoseconds
}

// readProfile reads docs/data/profiles/<stage>.folded: a line that begins with #
// says what it is, the others hold a stack and its time.
func readProfile(root, stage string) (*profile, error) {
	path := filepath.Join(root, "docs", "data", "profiles", stage+".folded")
	b, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("no profile of %s: %w; make docs-refresh records it", stage, err)
	}
	p := &profile{stacks: map[string]int64{}}
	for line := range strings.Lines(string(b)) {
		line = strings.TrimSpace(line)
		if about, ok := strings.CutPrefix(line, "# "); ok {
			p.about = about
			continue
		}
		i := strings.LastIndexByte(line, ' ')
		if i < 0 {
			return nil, fmt.Errorf("%s: %q is no stack with its time", path, line)
		}
		n, err := strconv.ParseInt(line[i+1:], 10, 64)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
		p.stacks[line[:i]] += n
	}
	if p.total() == 0 {
		return nil, fmt.Errorf("%s holds no sample", path)
	}
	return p, nil
}

func (p *profile) total() (sum int64) {
	for _, n := range p.stacks {
		sum += n
	}
	return sum
}

func (p *profile) write(path string) error {
	var out strings.Builder
	fmt.Fprintf(&out, "# %s\n", p.about)
	for _, stack := range slices.Sorted(maps.Keys(p.stacks)) {
		fmt.Fprintf(&out, "%s %d\n", stack, p.stacks[stack])
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	return os.WriteFile(path, []byte(out.String()), fs.FileMode(0o644))
}

var (
	rawComment  = regexp.MustCompile(`^Comment: (.*)$`)
	rawSample   = regexp.MustCompile(`^\s*\d+\s+(\d+): ([\d ]+)$`)
	rawLocation = regexp.MustCompile(`^\s*(\d+): 0x[0-9a-f]+ (?:M=(\d+) )?(?:\[F\] )?(\S+) `)
	rawInlined  = regexp.MustCompile(`^\s+(\S+) \S*:\d+`)
	rawMapping  = regexp.MustCompile(`^(\d+): \S+ (\S+)`)
)

// inKernel marks a frame of the kernel's own.
const inKernel = "[kernel] "

// parseRawProfile reads what `go tool pprof -raw` prints of a CPU profile, by Go
// or by perf.
func parseRawProfile(text []byte) (*profile, error) {
	type sample struct {
		time      int64
		locations []string
	}
	type location struct {
		mapping string
		frames  []string // leaf first
	}
	var samples []sample
	locations, mappings := map[string]location{}, map[string]string{}
	var comments []string
	part, last := "", ""
	scanner := bufio.NewScanner(bytes.NewReader(text))
	scanner.Buffer(nil, 1<<20)
	for scanner.Scan() {
		line := scanner.Text()
		switch line {
		case "Samples:", "Locations", "Mappings":
			part = line
			continue
		}
		switch part {
		case "":
			if found := rawComment.FindStringSubmatch(line); found != nil {
				comments = append(comments, found[1])
			}
		case "Samples:":
			if found := rawSample.FindStringSubmatch(line); found != nil {
				time, err := strconv.ParseInt(found[1], 10, 64)
				if err != nil {
					return nil, err
				}
				samples = append(samples, sample{time, strings.Fields(found[2])})
			}
		case "Locations":
			if found := rawLocation.FindStringSubmatch(line); found != nil {
				last = found[1]
				locations[last] = location{found[2], []string{found[3]}}
			} else if found := rawInlined.FindStringSubmatch(line); found != nil {
				l := locations[last]
				locations[last] = location{l.mapping, append(l.frames, found[1])}
			}
		case "Mappings":
			if found := rawMapping.FindStringSubmatch(line); found != nil {
				mappings[found[1]] = found[2]
			}
		}
	}
	if err := scanner.Err(); err != nil {
		return nil, err
	}
	p := &profile{about: strings.Join(comments, "; "), stacks: map[string]int64{}}
	for _, s := range samples {
		var stack []string
		for _, id := range s.locations {
			l := locations[id]
			mark := ""
			if strings.HasPrefix(mappings[l.mapping], "[kernel") {
				mark = inKernel
			}
			for _, f := range l.frames {
				stack = append(stack, mark+f)
			}
		}
		slices.Reverse(stack)
		if stack = tidyStack(stack); len(stack) > 0 {
			p.stacks[strings.Join(stack, ";")] += s.time
		}
	}
	if p.total() == 0 {
		return nil, fmt.Errorf("the profile holds no sample: the server was idle")
	}
	return p, nil
}

// kernelCalls are the functions of shared/netpoll that enter the kernel, and
// the system call that each makes.
var kernelCalls = map[string]string{
	"netpoll.sendto": "sendto", "netpoll.recvfrom": "recvfrom", "netpoll.sendmsg": "sendmsg", "netpoll.epollControl": "epoll_ctl",
	"netpoll.timerfdSettime": "timerfd_settime", "netpoll.writeOne": "write to an eventfd", "netpoll.accept4": "accept",
}

// kernelParts are the two things inside a system call that the chapters are
// about. All else that the kernel does there is left out.
var kernelParts = []struct {
	name string
	form *regexp.Regexp
}{
	{"softirq: the receiver's side", regexp.MustCompile(`softirq|__local_bh_enable_ip|net_rx_action|__napi_poll`)},
	{"waking a thread", regexp.MustCompile(`wake_up|ep_poll_callback|sock_def_readable|try_to_wake|ttwu|futex_wake|__schedule$|schedule$`)},
}

// tidyStack shortens names and leaves out what says nothing: how a loop's
// goroutine was started, the layers between a wrapper and the kernel, and the
// kernel's own layers. A stack of the admin listener, which answered whoever
// recorded, is left out altogether.
func tidyStack(stack []string) []string {
	var out, kernel []string
	call := ""
	for _, frame := range stack {
		if name, ok := strings.CutPrefix(frame, inKernel); ok {
			kernel = append(kernel, name)
			continue
		}
		frame = strings.TrimPrefix(frame, "github.com/qps-ladder/qps-ladder/shared/")
		frame = frame[strings.LastIndexByte(frame, '/')+1:]
		switch {
		case strings.HasPrefix(frame, "http.(*Server).Serve"), strings.HasPrefix(frame, "http.(*connReader)"):
			return nil
		case strings.HasPrefix(frame, "sync.(*WaitGroup).Go"), strings.HasPrefix(frame, "main.(*server).Start."):
			continue
		case strings.HasPrefix(frame, "syscall.RawSyscall"), frame == "syscall.Syscall6", frame == "syscall.Syscall", strings.HasPrefix(frame, "unix.RawSyscall"):
			continue
		case strings.HasSuffix(frame, ".Syscall6"):
			// Go's profile ends here, perf's goes on in the kernel.
			kernel = append(kernel, "system call")
			continue
		}
		if name := kernelCalls[frame]; name != "" {
			call = name
			continue
		}
		// How the runtime does its work in detail is no part of any lesson here.
		if n := len(out); n > 0 && frameClass(frame) == "runtime" && frameClass(out[n-1]) == "runtime" {
			continue
		}
		if strings.HasPrefix(frame, "netpoll.(*Poller)") && (strings.HasSuffix(frame, ".look") || strings.HasSuffix(frame, ".block") || strings.HasSuffix(frame, ".Wait")) {
			call = "epoll_wait"
		}
		out = append(out, frame)
	}
	if len(kernel) == 0 {
		return out
	}
	if call == "" {
		call = "page faults, interrupts and others"
		if kernel[0] == "system call" || slices.ContainsFunc(kernel, func(f string) bool { return strings.HasPrefix(f, "do_syscall") }) {
			call = "other system calls"
		}
	}
	out = append(out, inKernel+call)
	for _, part := range kernelParts {
		if slices.ContainsFunc(kernel, part.form.MatchString) {
			out = append(out, inKernel+part.name)
		}
	}
	return out
}

// whereFile is docs/data/where.json as `ladder where` writes it; bench/profile
// describes it.
type whereFile struct {
	Schema  string        `json:"schema"`
	Version int           `json:"version"`
	Source  string        `json:"source"`
	Servers []whereServer `json:"servers"`
}

type whereServer struct {
	Server string  `json:"server"`
	CPU    float64 `json:"cpu_us_per_request"`
	Rows   []struct {
		Category string  `json:"category"`
		CPU      float64 `json:"cpu_us_per_request"`
		Share    float64 `json:"share"`
		Ceiling  float64 `json:"ceiling"` // 0.25 is a quarter more requests
	} `json:"rows"`
}

func readWhere(root string) (*whereFile, error) {
	path := filepath.Join(root, "docs", "data", "where.json")
	b, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("%w; make docs-refresh measures it", err)
	}
	var w whereFile
	if err := json.Unmarshal(b, &w); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	if w.Schema != "qps-ladder/where" || w.Version != 1 {
		return nil, fmt.Errorf("%s: schema %q version %d is not understood", path, w.Schema, w.Version)
	}
	return &w, nil
}

// whereTable shows where the CPU time of a request goes, stage by stage.
func (b *builder) whereTable(stages ...string) (string, error) {
	w, err := readWhere(b.root)
	if err != nil {
		return "", err
	}
	head := []string{"µs of server CPU per request on hello"}
	var columns []int
	for _, s := range stages {
		i := slices.IndexFunc(w.Servers, func(x whereServer) bool { return x.Server == b.results.server(s) })
		if i < 0 {
			return "", fmt.Errorf("where.json has no %s", s)
		}
		columns = append(columns, i)
		head = append(head, html.EscapeString(s))
	}
	g := newGrid("numbers where", head...)
	const tooSmall = 0.002
	for r, row := range w.Servers[columns[0]].Rows {
		cells, any := []string{html.EscapeString(row.Category)}, false
		for _, i := range columns {
			c := w.Servers[i].Rows[r]
			if c.Share < tooSmall {
				cells = append(cells, "–")
				continue
			}
			any = true
			cells = append(cells, fmt.Sprintf(`<span title="for nothing, it would bring %.0f%% more requests at most">%.1f <small>%.0f%%</small></span>`, 100*c.Ceiling, c.CPU, 100*c.Share))
		}
		if any {
			g.row(cells...)
		}
	}
	cells := []string{"<strong>all</strong>"}
	for _, i := range columns {
		cells = append(cells, fmt.Sprintf("<strong>%.1f</strong>", w.Servers[i].CPU))
	}
	g.row(cells...)
	return g.String() + fmt.Sprintf(`<p class="measured">The whole is the kernel's account of the process, the parts are shares of samples, by %s. <code>make where</code></p>`, html.EscapeString(w.Source)), nil
}

// flame draws the profiles of one or two stages as flame graphs: width is CPU
// time, callers are above what they call.
func (b *builder) flame(stages ...string) (string, error) {
	var out strings.Builder
	for _, s := range stages {
		p, err := readProfile(b.root, b.results.short(b.results.server(s)))
		if err != nil {
			return "", err
		}
		fmt.Fprintf(&out, `<figure class="flame"><figcaption>%s</figcaption>`, html.EscapeString(p.about))
		out.WriteString(`<div class="frames" tabindex="0">`)
		p.draw(&out)
		out.WriteString("</div></figure>\n")
	}
	return strings.TrimSpace(out.String()), nil
}

type frame struct {
	name     string
	time     int64
	children map[string]*frame
}

func (p *profile) draw(out *strings.Builder) {
	root := &frame{children: map[string]*frame{}}
	for stack, n := range p.stacks {
		root.time += n
		at := root
		for name := range strings.SplitSeq(stack, ";") {
			next := at.children[name]
			if next == nil {
				next = &frame{name: name, children: map[string]*frame{}}
				at.children[name] = next
			}
			next.time += n
			at = next
		}
	}
	root.drawChildren(out, root.time, root.time)
}

// drawChildren draws one level and, inside each frame, the levels below it.
func (f *frame) drawChildren(out *strings.Builder, parent, total int64) {
	const tooNarrow = 0.004 // of the whole
	children := slices.SortedFunc(maps.Values(f.children), func(a, b *frame) int {
		return cmp.Or(cmp.Compare(b.time, a.time), strings.Compare(a.name, b.name))
	})
	for _, c := range children {
		share := float64(c.time) / float64(total)
		if share < tooNarrow {
			continue
		}
		fmt.Fprintf(out, `<div class="fr" style="width:%.2f%%"><span class="%s" title="%s: %.1f%%">%s</span>`,
			100*float64(c.time)/float64(parent), frameClass(c.name), html.EscapeString(c.name), 100*share, html.EscapeString(frameLabel(c.name)))
		if len(c.children) > 0 {
			out.WriteString(`<div class="row">`)
			c.drawChildren(out, c.time, total)
			out.WriteString(`</div>`)
		}
		out.WriteString(`</div>`)
	}
}

// frameClass tells kernel, Go's runtime, Go's library and the project's own code
// apart.
func frameClass(name string) string {
	switch {
	case strings.HasPrefix(name, inKernel):
		return "kernel"
	case strings.HasPrefix(name, "runtime."), strings.HasPrefix(name, "gc"):
		return "runtime"
	case strings.HasPrefix(name, "main."), strings.HasPrefix(name, "netpoll."), strings.HasPrefix(name, "http1."), strings.HasPrefix(name, "app."):
		return "project"
	}
	return "library"
}

// frameLabel is a frame's name without its package and decoration.
func frameLabel(name string) string {
	name = strings.TrimPrefix(name, inKernel)
	name = strings.TrimPrefix(name, "main.")
	return strings.NewReplacer("(*", "", ")", "").Replace(name)
}
