package grade

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strconv"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/qps-ladder/qps-ladder/bench/workshop/internal/witness"
	"github.com/qps-ladder/qps-ladder/shared/harness"
)

// asServer, in the environment, makes the test binary a server of that kind.
const asServer = "QPS_LADDER_GRADE_TEST_SERVER"

func TestMain(m *testing.M) {
	kind := os.Getenv(asServer)
	if kind == "" {
		os.Exit(m.Run())
	}
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, syscall.SIGTERM)
	pid := os.Getpid()
	switch kind {
	case "ends":
		fmt.Fprintln(os.Stderr, "no, thanks")
		os.Exit(3)
	case "mumbles":
		fmt.Println("hello there")
		select {}
	case "is another":
		pid++
	case "leaves a process":
		left := exec.Command("sleep", "300")
		left.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
		if err := left.Start(); err != nil {
			panic(err)
		}
	}
	serve, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		panic(err)
	}
	admin, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		panic(err)
	}
	counters := http.NewServeMux()
	counters.HandleFunc("/debug/counters", func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprint(w, `{"total":{"requests":0,"writes":7},"runtime":{"heap_bytes":1},"loops":[{"writes":7}]}`)
	})
	go http.Serve(serve, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, greeting) }))
	go http.Serve(admin, counters)
	fmt.Printf("ready stage=test pid=%d addr=%s workers=1 admin=%s\n", pid, serve.Addr(), admin.Addr())
	<-signals
	if kind == "fails at the end" {
		fmt.Fprintln(os.Stderr, "it is too late")
		os.Exit(4)
	}
	os.Exit(0)
}

func startKind(t *testing.T, kind string) (*Server, error) {
	self, err := os.Executable()
	require.NoError(t, err)
	s, err := (&Subject{Context: context.Background()}).start(self, []string{asServer + "=" + kind}, nil, nil)
	if err == nil {
		t.Cleanup(s.Kill)
	}
	return s, err
}

func TestServerThatIsFine(t *testing.T) {
	s, err := startKind(t, "good")
	require.NoError(t, err)
	require.NoError(t, s.helloOver(2))
	r, err := s.read()
	require.NoError(t, err)
	require.EqualValues(t, 7, r.Total.Writes)
	_, ok := s.await(func(r harness.Reading) bool { return len(r.Loops) == 1 && r.Process.HeapBytes == 1 })
	require.True(t, ok)
	ports, err := listening(s.PID())
	require.NoError(t, err)
	require.Len(t, ports, 2)
	require.NoError(t, s.behaves())
	require.NoError(t, s.Stop())
	_, err = s.read()
	require.ErrorContains(t, err, "the server ended")
	require.ErrorContains(t, s.Stop(), "ended before it was asked to")
}

func TestServersThatAreNot(t *testing.T) {
	for kind, says := range map[string]string{
		"ends":       "no, thanks",
		"mumbles":    `no ready line: "hello there"`,
		"is another": "says that its process is",
	} {
		_, err := startKind(t, kind)
		require.ErrorContains(t, err, says, kind)
		require.NotContains(t, err.Error(), "\n", kind)
	}
	s, err := startKind(t, "fails at the end")
	require.NoError(t, err)
	require.ErrorContains(t, s.Stop(), "the server ended badly when it was asked to (exit status 4): it is too late")
	s, err = startKind(t, "leaves a process")
	require.NoError(t, err)
	require.ErrorContains(t, s.Stop(), "left 1 process of its own behind")
	_, err = (&Subject{Binary: "/nowhere/at/all", Context: context.Background()}).serve()
	require.ErrorContains(t, err, "cannot start the server")
}

// TestServerEndsWithItsSubject ends the context that all servers of a subject live in.
func TestServerEndsWithItsSubject(t *testing.T) {
	self, err := os.Executable()
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	s, err := (&Subject{Context: ctx}).start(self, []string{asServer + "=good"}, nil, nil)
	require.NoError(t, err)
	defer s.Kill()
	cancel()
	require.NoError(t, s.Wait(answerLimit))
}

// TestEndMarked starts a process that has left its group and its parent's care.
func TestEndMarked(t *testing.T) {
	mark := NewMark()
	away := exec.Command("sleep", "300")
	away.Env = append(os.Environ(), mark)
	away.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	require.NoError(t, away.Start())
	require.Zero(t, EndMarked(NewMark()), "it has another mark")
	require.Equal(t, 1, EndMarked(mark))
	require.Error(t, away.Wait())
	require.Equal(t, syscall.SIGKILL, away.ProcessState.Sys().(syscall.WaitStatus).Signal())
}

func TestListeningSeesEveryPort(t *testing.T) {
	var want []string
	for _, network := range []string{"tcp", "tcp4"} {
		l, err := net.Listen(network, "127.0.0.1:0")
		require.NoError(t, err)
		defer l.Close()
		want = append(want, strconv.Itoa(l.Addr().(*net.TCPAddr).Port))
	}
	udp, err := net.ListenPacket("udp", "127.0.0.1:0")
	require.NoError(t, err)
	defer udp.Close()
	want = append(want, strconv.Itoa(udp.LocalAddr().(*net.UDPAddr).Port))
	got, err := listening(os.Getpid())
	require.NoError(t, err)
	require.Subset(t, got, want)
	_, err = listening(1 << 30)
	require.ErrorContains(t, err, "gone")
}

func TestOpenFiles(t *testing.T) {
	folder := t.TempDir()
	path := filepath.Join(folder, "a")
	file, err := os.Create(path)
	require.NoError(t, err)
	n, err := openFiles(os.Getpid(), folder)
	require.NoError(t, err)
	require.Equal(t, 1, n)
	require.NoError(t, os.Remove(path), "one that has been deleted is open still")
	n, err = openFiles(os.Getpid(), folder)
	require.NoError(t, err)
	require.Equal(t, 1, n)
	require.NoError(t, file.Close())
	n, err = openFiles(os.Getpid(), folder)
	require.NoError(t, err)
	require.Zero(t, n)
}

func TestSegmentsIn(t *testing.T) {
	answer := make([]byte, 1000)
	conn, err := dial(speaks(t, string(answer), string(answer)))
	require.NoError(t, err)
	defer conn.Close()
	for want := 1; want <= 2; want++ {
		require.NoError(t, conn.send("x"))
		for range answer {
			_, err := conn.Reader.ReadByte()
			require.NoError(t, err)
		}
		n, err := conn.segmentsIn()
		require.NoError(t, err)
		require.Equal(t, want, n)
	}
}

// seen feeds a record with calls: thread, number, result, arguments.
func seen(calls ...witness.Call) *record {
	r := newRecord()
	for i := range calls {
		r.observe(&calls[i])
	}
	return r
}

func call(thread int, number uintptr, result int64, arguments ...uintptr) witness.Call {
	c := witness.Call{Thread: thread, Number: number, Result: result}
	copy(c.Args[:], arguments)
	return c
}

func TestRecordCounts(t *testing.T) {
	const epoll, other, socket = 3, 4, 9
	add := call(1, unix.SYS_EPOLL_CTL, 0, epoll, unix.EPOLL_CTL_ADD, socket)
	for name, c := range map[string]struct {
		calls []witness.Call
		want  map[string]int
	}{
		"a request on its own thread": {
			[]witness.Call{add, call(1, unix.SYS_EPOLL_PWAIT, 1, epoll), call(1, unix.SYS_RECVFROM, 40, socket, 0, 4096), call(1, unix.SYS_SENDTO, 150, socket, 0, 150)},
			map[string]int{epollCtl: 1, epollWait: 1, reads: 1, writes: 1, fromMemory: 150},
		},
		"one that crosses threads": {
			[]witness.Call{add, call(1, unix.SYS_EPOLL_PWAIT, 1, epoll), call(2, unix.SYS_EPOLL_PWAIT, 1, other), call(1, unix.SYS_WRITE, 8, 7, 0, 8),
				call(2, unix.SYS_RECVFROM, 40, socket, 0, 4096), call(2, unix.SYS_SENDTO, 150, socket, 0, 150)},
			map[string]int{epollCtl: 1, epollWait: 2, wakeUps: 1, reads: 1, readsElsewhere: 1, writes: 1, writesElsewhere: 1, fromMemory: 150},
		},
		"a log line is no wake-up": {
			[]witness.Call{call(1, unix.SYS_WRITE, 20, 2, 0, 20)},
			map[string]int{},
		},
		"sendfile copies nothing": {
			[]witness.Call{call(1, unix.SYS_SENDTO, 100, socket, 0, 100, unix.MSG_MORE), call(1, unix.SYS_SENDFILE, 5000, socket), call(1, unix.SYS_EPOLL_PWAIT, 1, epoll)},
			map[string]int{writes: 2, fromMemory: 100, epollWait: 1},
		},
		"MSG_MORE and then a wait": {
			[]witness.Call{call(1, unix.SYS_SENDTO, 100, socket, 0, 100, unix.MSG_MORE), call(2, unix.SYS_EPOLL_PWAIT, 1, other), call(1, unix.SYS_EPOLL_PWAIT, 1, epoll), call(1, unix.SYS_EPOLL_PWAIT, 1, epoll)},
			map[string]int{writes: 1, fromMemory: 100, epollWait: 3, heldBack: 1},
		},
		"MSG_MORE while another thread waits": {
			[]witness.Call{call(1, unix.SYS_SENDTO, 100, socket, 0, 100, unix.MSG_MORE), call(2, unix.SYS_EPOLL_PWAIT, 1, other), call(1, unix.SYS_SENDFILE, 5000, socket)},
			map[string]int{writes: 2, fromMemory: 100, epollWait: 1},
		},
		"MSG_MORE and the end": {
			[]witness.Call{call(1, unix.SYS_SENDTO, 100, socket, 0, 100, unix.MSG_MORE), call(1, unix.SYS_CLOSE, 0, socket), call(1, unix.SYS_EPOLL_PWAIT, 1, epoll)},
			map[string]int{writes: 1, fromMemory: 100, epollWait: 1},
		},
		"a full socket": {
			[]witness.Call{call(1, unix.SYS_SENDTO, -int64(unix.EAGAIN), socket, 0, 100)},
			map[string]int{writes: 1, fromMemory: 0},
		},
		"closed twice": {
			[]witness.Call{call(1, unix.SYS_CLOSE, 0, socket), call(1, unix.SYS_CLOSE, -int64(unix.EBADF), socket)},
			map[string]int{closedAgain: 1},
		},
	} {
		require.Equal(t, c.want, seen(c.calls...).snapshot(), name)
	}
}

func TestRecordRemembers(t *testing.T) {
	const epoll = 3
	wait := call(1, unix.SYS_EPOLL_PWAIT, 1, epoll)
	r := seen(wait, call(1, unix.SYS_RECVFROM, 40, 9, 0, 256), call(1, unix.SYS_RECVFROM, 40, 9, 0, 8192), wait,
		call(1, unix.SYS_RECVFROM, 1, 9, 0, 128), call(1, unix.SYS_SENDTO, largePiece, 9, 0x1000, largePiece),
		call(1, unix.SYS_SENDTO, largePiece, 9, 0x1000, largePiece), call(1, unix.SYS_SENDTO, largePiece, 9, 0x2000, largePiece))
	require.EqualValues(t, 256, r.firstRoom(), "the first read after a wait, and no other")
	require.Equal(t, 2, r.most())
	require.Equal(t, 2, r.places(largePiece), "from two places, one of them twice")
	require.Zero(t, r.places(largePiece+1))
	r.restart()
	require.Zero(t, r.most())
}
