package profile

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/google/pprof/profile"

	"github.com/qps-ladder/qps-ladder/shared/harness"
)

// perfRecorder samples a server with perf, stacks of kernel and program
// together.
type perfRecorder struct {
	tool
	event   string // "cycles" or "cpu-clock"
	folder  string
	binary  string
	stopped bool

	inliners map[string]*inliner // by binary
}

const (
	// perfRate is in samples per second of CPU time: about 1% of overhead.
	perfRate = 1999

	hardwareEvent = "cycles"
	softwareEvent = "cpu-clock"
)

// perfUnavailable says why there is no profile by perf, and what to do about it.
// It is one line, and not the end of the matter: the Go profile is always there.
type perfUnavailable struct{ reason string }

func (e *perfUnavailable) Error() string { return e.reason }

func unavailable(format string, args ...any) error {
	return &perfUnavailable{fmt.Sprintf(format, args...)}
}

// newPerfRecorder finds out what perf can do here, by trying it on a process
// that ends at once.
func newPerfRecorder(ctx context.Context, cpus []int) (*perfRecorder, error) {
	if _, err := exec.LookPath("perf"); err != nil {
		return nil, unavailable("perf is not installed: your distribution has it as linux-perf, linux-tools or perf")
	}
	// perf stat says plainly what record would replace by something else.
	event := hardwareEvent
	text, err := tryPerf(ctx, "stat", "-x", ",", "-e", hardwareEvent, "--", "true")
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	if err != nil || strings.Contains(text, "<not supported>") || strings.Contains(text, "<not counted>") {
		event = softwareEvent
	}
	folder, err := os.MkdirTemp("", "ladder-perf-")
	if err != nil {
		return nil, err
	}
	r := &perfRecorder{event: event, tool: tool{cpus: cpus}, folder: folder, inliners: map[string]*inliner{}}
	text, err = tryPerf(ctx, "record", "-q", "-e", event+":k", "-g", "-o", filepath.Join(folder, "try.data"), "--", "true")
	if ctx.Err() != nil {
		r.remove()
		return nil, ctx.Err()
	}
	if err != nil {
		r.remove()
		return nil, perfRefused(text, err)
	}
	return r, nil
}

// perfRefused explains why perf did not start.
func perfRefused(text string, err error) error {
	const paranoid = "/proc/sys/kernel/perf_event_paranoid"
	if level, readErr := os.ReadFile(paranoid); readErr == nil && os.Geteuid() != 0 {
		if n, _ := strconv.Atoi(strings.TrimSpace(string(level))); n > 1 {
			return unavailable("perf may not look into the kernel (kernel.perf_event_paranoid is %d): sudo sysctl kernel.perf_event_paranoid=1 kernel.kptr_restrict=0", n)
		}
	}
	if strings.Contains(text, "perf_event_paranoid") || strings.Contains(text, "ermission") {
		return unavailable("perf is not permitted here (a container without CAP_PERFMON, perhaps): run as root, or sudo sysctl kernel.perf_event_paranoid=1 kernel.kptr_restrict=0")
	}
	return unavailable("perf does not work here: %s", oneLine(cmp.Or(text, err.Error())))
}

// oneLine keeps the beginning of a text, in one line.
func oneLine(text string) string {
	const longest = 200
	text = strings.Join(strings.Fields(text), " ")
	if len(text) > longest {
		text = text[:longest] + "…"
	}
	return text
}

// tryPerf runs perf and returns its standard error: perf stat counts there, and what perf
// record prints for its command is of no use.
func tryPerf(ctx context.Context, args ...string) (string, error) {
	out, err := harness.Run(ctx, harness.Command{Path: "perf", Args: args})
	if err == nil {
		err = out.Err()
	}
	return out.Stderr, err
}

func (r *perfRecorder) data() string { return filepath.Join(r.folder, "perf.data") }

// start returns once perf samples.
func (r *perfRecorder) start(ctx context.Context, s *session) error {
	r.binary, r.stopped = s.path, false
	return r.startPerf(ctx, s, "record", "-q", "-g", "-e", r.event, "-F", strconv.Itoa(perfRate), "-o", r.data())
}

// finish ends the sampling; profile then reads what there is.
func (r *perfRecorder) finish(context.Context) error {
	if r.process.Alive() {
		if err := r.order("disable"); err != nil {
			return fmt.Errorf("perf does not stop: %w", err)
		}
	}
	err := r.stop()
	r.stopped = err == nil
	return err
}

// profile turns what was recorded into pprof's form.
func (r *perfRecorder) profile(ctx context.Context) (*profile.Profile, error) {
	if !r.stopped {
		return nil, errors.New("the recording by perf was cut short")
	}
	out, err := harness.Run(ctx, harness.Command{
		Path: "perf", Args: []string{"script", "-i", r.data(), "-F", "tid,period,event,ip,sym,dso", "--no-inline"},
	})
	if err != nil {
		return nil, err
	}
	if err := out.Err(); err != nil {
		return nil, fmt.Errorf("perf cannot read what it recorded: %s", oneLine(err.Error()))
	}
	names, ok := r.inliners[r.binary]
	if !ok {
		names = newInliner(r.binary)
		r.inliners[r.binary] = names
	}
	return parseScript(strings.NewReader(out.Stdout), r.event, names)
}

// remove deletes its files.
func (r *perfRecorder) remove() { os.RemoveAll(r.folder) }
