package serve

import (
	"fmt"
	"io"
	"os"
	"os/signal"
	"runtime"
	"sync"
	"syscall"
	"time"

	"github.com/qps-ladder/qps-ladder/shared/app"
	"github.com/qps-ladder/qps-ladder/shared/http1"
	"github.com/qps-ladder/qps-ladder/shared/netpoll"
	"github.com/qps-ladder/qps-ladder/shared/topology"
)

// Config is what a stage's server is made from. Every field is set and in its range; a server must not
// change it.
type Config struct {
	Stage   string // the stage's name, such as "stage0-naive"
	Addr    string // where to listen, "host:port" as netpoll.Listen takes it; port 0 takes a free one
	Workers int    // threads that serve connections, 1 to 1024

	IdleTimeout   time.Duration // a connection at rest between requests, above 0 as all of these
	HeadTimeout   time.Duration // from a head's first byte to its last
	BodyTimeout   time.Duration // between two bytes of a body
	BodyTotal     time.Duration // from a body's first byte to its last
	WriteTimeout  time.Duration // between two bytes that the client acknowledges: what the socket still holds shrinks
	WriteTotal    time.Duration // while output waits for the client, from when it had to wait to its last byte
	LingerTimeout time.Duration // between the answer that closes and the close
	Grace         time.Duration // from a signal to Kill; 0 or more. Run keeps it: a server need not

	MaxBody  int64 // bytes of a request's body, 0 to 1 GiB
	MaxConns int   // open connections at a time; 0 means no limit

	Acceptor bool  // one acceptor that hands connections out, in place of a listener for each loop
	Overlap  bool  // share the port with an older process of the same user
	Pin      bool  // bind loop i to CPUs[i % len(CPUs)], as PinLoop does
	CPUs     []int // the CPUs that this process may use; with Pin those of the loops, in their order; never empty

	Admin  string // where the admin listener is asked for; "" means none. Run serves it
	Static string // the folder behind /static/; "" means none. It is App's
	Poison bool   // overwrite a request's bytes as soon as its views are dead (a test mode)

	App Handler   // answers the requests; safe for any number of goroutines
	Err io.Writer // for log lines, one Write each; safe for any number of goroutines

	pinFailed uint32 // 1 once PinLoop has told of it; atomic
}

// Handler answers requests, as app.App does.
type Handler interface {
	// Serve writes the answer to q into s, which has been Reset. Neither may be used after it returns,
	// except by the caller. It may panic: that is the caller's to catch.
	Serve(q *http1.Request, s *http1.Response)
}

// Server is one stage's server. Start comes first, and once; Loops may be called at any time after that;
// the others from any goroutine. After a Start that failed, only Close may follow, and does.
type Server interface {
	// Start listens, starts the loops and returns; addr is where, with the port that was taken. After an
	// error, which is one line for a person to read, nothing is left running. What it had opened by then
	// it may leave to Close.
	Start() (addr string, err error)
	// Drain begins a graceful stop and returns at once. A second call changes nothing.
	Drain()
	// Wait returns when every loop has ended.
	Wait()
	// Kill makes the loops close everything at once, and returns before they have.
	Kill()
	// Close gives back every descriptor that the loops have not closed themselves. It comes last, and once:
	// after Wait has returned, or after Start has failed, wherever it stopped: with some loops made and
	// others not, with a poller and no listener. No other call may be under way or follow.
	Close()
	// Loops has the counters of each loop thread, in an order that does not change.
	Loops() []*netpoll.Published
}

// Factory makes a server, without starting it. An error is one line for a person to read.
type Factory func(*Config) (Server, error)

const (
	exitStopped = 0 // stopped by a signal, with everything closed
	exitFailed  = 1 // could not serve, or not to the end
	exitUsage   = 2 // a bad flag
)

// killTime is how long loops may take to end once they were told to close everything at once.
const killTime = 5 * time.Second

// settleTime is how long handshakes may take that are under way when a successor gets the new connections: a round trip over
// most of the internet. Those that take longer are reset.
const settleTime = 200 * time.Millisecond

// Main runs the stage with the process's own arguments and ends the process.
func Main(stage string, f Factory) {
	os.Exit(Run(stage, f, os.Args[1:], os.Stdout, os.Stderr))
}

// Run runs the stage until a signal stops it, and returns the exit code. It handles SIGTERM and
// SIGINT meanwhile, and sets GOMAXPROCS: one Run at a time, in a process that is there for it.
func Run(stage string, f Factory, args []string, stdout, stderr io.Writer) (exitCode int) {
	// Before anything else, so that a signal during the start is a stop as well.
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	defer signal.Stop(signals)
	return run(stage, f, args, stdout, &lockedWriter{writer: stderr}, signals)
}

func run(stage string, f Factory, args []string, stdout, stderr io.Writer, signals <-chan os.Signal) int {
	fail := func(code int, err error) int {
		fmt.Fprintf(stderr, "%s: %v\n", stage, err)
		return code
	}
	o, help, err := parse(stage, args)
	if help != "" {
		fmt.Fprint(stdout, help)
		return exitStopped
	}
	if err != nil {
		return fail(exitUsage, fmt.Errorf("%w (-h lists the flags)", err))
	}
	if runtime.GOOS != "linux" {
		return fail(exitFailed, fmt.Errorf("the servers need Linux (epoll), and this is %s: the dev container has one", runtime.GOOS))
	}
	if o.foreground {
		defer takeTerminal()()
	}
	if o.maxFiles > 0 {
		if err := limitFiles(uint64(o.maxFiles)); err != nil {
			return fail(exitUsage, err)
		}
	}
	if o.CPUs, err = netpoll.CPUs(); err != nil {
		return fail(exitFailed, err)
	}
	if o.Workers == 0 {
		o.Workers = min(len(o.CPUs), maxWorkers)
	}
	switch least := goMaxProcs(o.Workers); {
	case o.gomaxprocs == 0:
		o.gomaxprocs = least
	case o.gomaxprocs < least:
		return fail(exitUsage, fmt.Errorf("-gomaxprocs %d is too few for %d workers, whose loops keep one each: use %d or more", o.gomaxprocs, o.Workers, least))
	}
	if o.Pin {
		o.CPUs = topology.Place(o.CPUs, o.Workers, readSys)
	}
	runtime.GOMAXPROCS(o.gomaxprocs)
	startTimers()

	routes := app.New(app.Options{TestRoutes: o.testRoutes, Static: o.Static, StaticMemory: o.staticMemory})
	defer routes.Close()
	o.App = routes
	o.Err = stderr

	// The admin listener comes first: when it cannot be had, no connection has been accepted yet.
	var admin *admin
	if o.Admin != "" {
		if admin, err = listenAdmin(stage, o.Admin); err != nil {
			return fail(exitFailed, err)
		}
		defer admin.close()
	}
	server, err := f(&o.Config)
	if err != nil {
		return fail(exitFailed, err)
	}
	addr, err := server.Start()
	if err != nil {
		server.Close()
		return fail(exitFailed, err)
	}
	ready := fmt.Sprintf("ready stage=%s pid=%d addr=%s workers=%d gomaxprocs=%d", stage, os.Getpid(), addr, o.Workers, o.gomaxprocs)
	if admin != nil {
		admin.serve(server.Loops)
		ready += " admin=" + admin.addr()
	}
	fmt.Fprintln(stdout, ready)

	ended := make(chan struct{})
	go func() {
		server.Wait()
		close(ended)
	}()
	select {
	case <-ended:
		server.Close()
		return fail(exitFailed, fmt.Errorf("the server ended by itself"))
	case <-signals:
	}
	if isTerminal(stderr) {
		fmt.Fprintf(stderr, "%s: draining, for %s at most; a second signal ends it\n", stage, short(o.Grace))
	}
	drain := sync.OnceFunc(server.Drain)
	var settled <-chan time.Time
	if netpoll.Steer(netpoll.SteerAway) {
		// A successor gets the new connections. We go on for those whose handshakes are under way with us.
		settled = time.After(settleTime)
	} else {
		drain()
	}
	grace := time.NewTimer(o.Grace)
	defer grace.Stop()
	for waiting := true; waiting; {
		select {
		case <-settled:
			netpoll.Steer(netpoll.SteerClose)
			drain()
		case <-ended:
			server.Close()
			return exitStopped
		case <-grace.C:
			waiting = false
		case <-signals:
			waiting = false
		}
	}
	drain()
	server.Kill()
	last := time.NewTimer(killTime)
	defer last.Stop()
	select {
	case <-ended:
		server.Close()
		return exitStopped
	case <-last.C:
		return fail(exitFailed, fmt.Errorf("a loop did not end within %v of being told to: a handler hangs", killTime))
	}
}

// goMaxProcs is how many threads may run Go code at a time, by the number of workers: the same rule
// at every stage, whatever the environment says. Each loop keeps one under load, also while it waits; stage0
// has a base loop beside its workers; and one is for the runtime's own work and the admin listener. With
// fewer, a loop that wakes up waits for the scheduler, and a step on the ladder would show that rather
// than its idea: with 1, stage0 crawls.
func goMaxProcs(workers int) int {
	return workers + 2
}

// startTimers makes the runtime open the descriptors that its timers need. It does so with the first
// timer, and throws if none is left: a server out of descriptors would crash when it is told to stop.
func startTimers() {
	time.AfterFunc(time.Hour, func() {}).Stop()
}

// lockedWriter lets many goroutines write lines to a writer that is made for one.
type lockedWriter struct {
	mutex  sync.Mutex
	writer io.Writer
}

func (w *lockedWriter) Write(p []byte) (int, error) {
	w.mutex.Lock()
	defer w.mutex.Unlock()
	return w.writer.Write(p)
}

// isTerminal says whether a person probably reads what is written to w.
func isTerminal(w io.Writer) bool {
	if locked, ok := w.(*lockedWriter); ok {
		w = locked.writer
	}
	file, ok := w.(*os.File)
	if !ok {
		return false
	}
	info, err := file.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0
}
