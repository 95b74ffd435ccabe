package serve

import (
	"cmp"
	"errors"
	"flag"
	"fmt"
	"io"
	"math"
	"net"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/qps-ladder/qps-ladder/shared/netpoll"
)

const (
	maxWorkers   = 1024
	maxTime      = 8760 * time.Hour // a year: no deadline in nanoseconds overflows
	maxBodyLimit = 1 << 30          // a body is held in memory as a whole
	maxStatic    = 1 << 40          // far below what a process can address
	minFiles     = 16               // below it, the runtime itself lacks descriptors
)

// options is a Config and what only Run needs to know.
type options struct {
	Config
	gomaxprocs   int   // 0: by the number of workers
	maxFiles     int   // 0: the hard limit
	staticMemory int64 // bytes, see app.Options
	testRoutes   bool
	foreground   bool
}

// parse reads the flags. Either it returns the text that -h asks for, or an error in one line, or options that are
// valid but for Workers, CPUs and what is not a flag.
func parse(stage string, args []string) (o options, help string, err error) {
	o.Stage = stage
	f := flags{FlagSet: flag.NewFlagSet(stage, flag.ContinueOnError)}
	f.SetOutput(io.Discard) // Run prints what there is to say

	f.address(&o.Addr, "addr", "127.0.0.1:8080", "listens here; 0: any port")
	f.number(&o.Workers, "workers", 0, maxWorkers, "threads that serve; 0: one for each CPU")
	f.duration(&o.IdleTimeout, "idle-timeout", time.Minute, "how long a connection may rest between requests")
	f.duration(&o.HeadTimeout, "head-timeout", 10*time.Second, "for a head, first byte to last")
	f.duration(&o.BodyTimeout, "body-timeout", 10*time.Second, "between two bytes of a body")
	f.duration(&o.BodyTotal, "body-total-timeout", time.Minute, "for a body, first byte to last")
	f.duration(&o.WriteTimeout, "write-timeout", 10*time.Second, "no byte acknowledged, told in 128 KiB steps")
	f.duration(&o.WriteTotal, "write-total-timeout", 10*time.Minute, "for an answer, until the client has all of it")
	f.duration(&o.LingerTimeout, "linger-timeout", time.Second, "for a client to close after the last answer")
	f.graceDuration(&o.Grace, "grace", 5*time.Second, "for a graceful stop, then all is closed")
	f.bytes(&o.MaxBody, "max-body", 1<<20, maxBodyLimit, "most bytes of a request's body")
	f.number(&o.MaxConns, "max-conns", 0, math.MaxInt32, "most open connections; 0: no limit")
	f.number(&o.maxFiles, "max-files", minFiles, math.MaxInt32, "most open files; 0: as the hard limit allows")
	f.flag(&o.Acceptor, "acceptor", "one acceptor hands connections to the loops")
	f.flag(&o.Overlap, "overlap", "shares the port with an older process")
	f.flag(&o.Pin, "pin", "binds each loop to a CPU")
	f.number(&o.gomaxprocs, "gomaxprocs", 0, maxWorkers+2, "threads that run Go code; 0: by the workers")
	f.admin(&o.Admin, "admin", "profiles and counters; :port is on loopback")
	f.folder(&o.Static, "static", "serves a folder under /static/")
	f.bytes(&o.staticMemory, "static-memory", 64<<20, maxStatic, "most bytes of files held, or of one file")
	// -h keeps quiet about what is there for the tests and the Makefile.
	f.BoolVar(&o.Poison, "poison", false, "")
	f.BoolVar(&o.testRoutes, "test-routes", false, "")
	f.BoolVar(&o.foreground, "foreground", false, "")

	switch err = f.Parse(args); {
	case errors.Is(err, flag.ErrHelp):
		return o, f.help(stage), nil
	case err != nil:
		return o, "", err
	case f.NArg() > 0:
		return o, "", fmt.Errorf("unknown argument %q", f.Arg(0))
	}
	return o, "", nil
}

// flags is a flag set whose values say what they want when they do not get it, and that knows in
// which order its help is read.
type flags struct {
	*flag.FlagSet
	listed []listed
}

type listed struct{ name, value, usage string }

// value is a flag.Value made from two functions.
type value struct {
	get func() string
	set func(string) error
}

func (v value) String() string {
	if v.get == nil {
		return "" // flag makes a zero value of its own to compare with
	}
	return v.get()
}

func (v value) Set(text string) error { return v.set(text) }

func (f *flags) add(name, placeholder, usage string, v value) {
	f.listed = append(f.listed, listed{name, placeholder, usage})
	f.Var(v, name, usage)
}

func (f *flags) flag(p *bool, name, usage string) {
	f.listed = append(f.listed, listed{name, "", usage})
	f.BoolVar(p, name, false, usage)
}

// number is a whole number from least to most, or 0 as long as it is not given.
func (f *flags) number(p *int, name string, least, most int, usage string) {
	f.add(name, "n", usage, value{
		get: func() string { return strconv.Itoa(*p) },
		set: func(text string) error {
			n, err := strconv.Atoi(text)
			if err != nil || n > most || n < least && n != 0 {
				return fmt.Errorf("want a whole number from %d to %d", least, most)
			}
			*p = n
			return nil
		},
	})
}

func (f *flags) bytes(p *int64, name string, preset, most int64, usage string) {
	*p = preset
	f.add(name, "bytes", usage, value{
		get: func() string { return strconv.FormatInt(*p, 10) },
		set: func(text string) error {
			n, err := strconv.ParseInt(text, 10, 64)
			if err != nil || n < 0 || n > most {
				return fmt.Errorf("want a whole number from 0 to %d", most)
			}
			*p = n
			return nil
		},
	})
}

func (f *flags) duration(p *time.Duration, name string, preset time.Duration, usage string) {
	f.time(p, name, preset, time.Millisecond, usage)
}

func (f *flags) graceDuration(p *time.Duration, name string, preset time.Duration, usage string) {
	f.time(p, name, preset, 0, usage)
}

func (f *flags) time(p *time.Duration, name string, preset, least time.Duration, usage string) {
	*p = preset
	f.add(name, "time", usage, value{
		get: func() string { return short(*p) },
		set: func(text string) error {
			d, err := time.ParseDuration(text)
			if err != nil || d < least || d > maxTime {
				return fmt.Errorf("want a time such as 10s or 500ms, from %s to %s", short(least), short(maxTime))
			}
			*p = d
			return nil
		},
	})
}

// short is d without the zero parts that time.Duration prints: 1m rather than 1m0s.
func short(d time.Duration) string {
	text := d.String()
	if strings.HasSuffix(text, "m0s") {
		text = strings.TrimSuffix(text, "0s")
	}
	if strings.HasSuffix(text, "h0m") {
		text = strings.TrimSuffix(text, "0m")
	}
	return text
}

func (f *flags) text(p *string, name, placeholder, preset, usage string, check func(string) (string, error)) {
	*p = preset
	f.add(name, placeholder, usage, value{
		get: func() string { return *p },
		set: func(text string) error {
			checked, err := check(text)
			if err == nil {
				*p = checked
			}
			return err
		},
	})
}

func (f *flags) address(p *string, name, preset, usage string) {
	f.text(p, name, "host:port", preset, usage, func(text string) (string, error) {
		_, err := netpoll.ParseAddress(text)
		return text, err
	})
}

// admin is the address of the admin listener. Profiles and counters tell a stranger much, and a profile
// costs time, so that no host means this machine alone, and not, as elsewhere in Go, every address.
func (f *flags) admin(p *string, name, usage string) {
	f.text(p, name, "host:port", "", usage, func(text string) (string, error) {
		if text == "" {
			return "", nil
		}
		if !strings.Contains(text, ":") {
			text = ":" + text
		}
		if strings.HasPrefix(text, ":") {
			text = net.JoinHostPort("127.0.0.1", text[1:])
		}
		_, err := netpoll.ParseAddress(text)
		return text, err
	})
}

func (f *flags) folder(p *string, name, usage string) {
	f.text(p, name, "folder", "", usage, func(text string) (string, error) {
		if text == "" {
			return "", nil
		}
		info, err := os.Stat(text)
		if err != nil {
			return "", err
		}
		if !info.IsDir() {
			return "", errors.New("it is not a folder")
		}
		return text, nil
	})
}

// help is the text that -h prints, at most 80 columns wide.
func (f *flags) help(stage string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s, one of the six HTTP servers of the QPS ladder (on Linux)\n\n", stage)
	fmt.Fprintf(&b, "Usage: %s [flags]\n\n", stage)
	for _, l := range f.listed {
		left := strings.TrimSpace("-" + l.name + " " + l.value)
		usage := l.usage
		if preset := f.Lookup(l.name).DefValue; cmp.Or(preset, "0") != "0" && preset != "false" {
			usage += " (" + preset + ")"
		}
		fmt.Fprintf(&b, "  %-25s %s\n", left, usage)
	}
	b.WriteString("  -h                        this text\n\n")
	b.WriteString("SIGTERM and SIGINT (Ctrl-C) stop it gracefully; a second one stops it at once.\n")
	b.WriteString("Exit code: 0 stopped by a signal, 1 could not serve, 2 bad flag.\n")
	return b.String()
}
