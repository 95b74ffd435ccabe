package profile

import (
	"go/ast"
	"go/parser"
	"go/token"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/qps-ladder/qps-ladder/shared/harness"
)

// recorded is a profile of stage0 on hello, recorded on Linux 6.18 with perf, or
// by the Go runtime.
func recorded(t *testing.T, tool string) *record {
	t.Helper()
	b, err := os.ReadFile(filepath.Join("testdata", "stage0-"+tool+".pb.gz"))
	require.NoError(t, err)
	p, err := parseProfile(b)
	require.NoError(t, err)
	o := outcome{requests: 10_000, seconds: 2, counters: harness.Reading{Process: harness.ProcessFigures{CPUNanos: 200_000_000}}}
	r, err := newRecord(p, "stage0-naive", "hello", map[string]string{"perf": "perf (cpu-clock)", "go": goSource}[tool], o)
	require.NoError(t, err)
	return r
}

func TestCategoriesAddUpToTheWhole(t *testing.T) {
	for _, tool := range []string{"perf", "go"} {
		r := recorded(t, tool)
		var sum float64
		for i, part := range r.split() {
			require.GreaterOrEqual(t, part, 0.0, category(i))
			sum += part
		}
		require.InEpsilon(t, r.outcome.cpuNanos(), sum, 1e-9, tool)
		require.InEpsilon(t, 20_000.0, sum, 1e-9)
	}
}

func TestEveryStackHasOneCategory(t *testing.T) {
	for _, tool := range []string{"perf", "go"} {
		for _, s := range recorded(t, tool).stacks {
			c, inside := decide(s.frames)
			require.Less(t, int(c), categories)
			require.Equal(t, c, categorise(s.frames))
			require.Positive(t, inside)
			require.LessOrEqual(t, inside, len(s.frames))
			// A stack is kernel time if and only if its leaf lies in the kernel, whatever called
			// it.
			if c != rest {
				require.Equal(t, s.frames[0].kind == kernelCode, c.isKernel(), "%s: %v", c, s.frames)
			}
		}
	}
}

func TestLittleFitsNowhere(t *testing.T) {
	r := recorded(t, "perf")
	parts := r.split()
	require.Less(t, parts[rest]/r.outcome.cpuNanos(), 0.02)
	require.Less(t, parts[kernelOther]/r.outcome.cpuNanos(), 0.05)
	for _, c := range []category{
		kernelSend, kernelSoftirq, kernelReceive, kernelWake, kernelEpollWait, kernelEpollControl, kernelTimer,
		goScheduler, goMemory, judging, parsing, headMaking, looping,
	} {
		require.Positive(t, parts[c], c)
	}
}

func TestCategoryOfAStack(t *testing.T) {
	k := func(name string) frame { return frame{name, kernelCode} }
	g := func(name string) frame { return frame{shorten(name), kindOf(name, false)} }
	netpollName := modulePath + "shared/netpoll."
	send := []frame{k("__sys_sendto"), k("do_syscall_64"), g("internal/runtime/syscall/linux.Syscall6"), g(netpollName + "sendto"), g("main.(*conn).flush")}
	on := func(inner ...frame) []frame { return append(inner, send...) }
	for _, c := range []struct {
		name   string
		want   category
		frames []frame
	}{
		{"copying into the socket", kernelSend, on(k("_copy_from_iter"), k("tcp_sendmsg_locked"), k("tcp_sendmsg"))},
		{"the receiver's side", kernelSoftirq, on(k("tcp_ack"), k("tcp_v4_rcv"), k("net_rx_action"), k("handle_softirqs"), k("tcp_write_xmit"), k("tcp_sendmsg"))},
		{"waking the receiver", kernelWake, on(k("_raw_spin_unlock_irqrestore"), k("__wake_up_common_lock"), k("sock_def_readable"), k("net_rx_action"), k("tcp_sendmsg"))},
		{"the switch after that", kernelWake, []frame{k("finish_task_switch.isra.0"), k("__schedule"), k("schedule"), k("exit_to_user_mode_loop"), k("do_syscall_64"), g(netpollName + "sendto")}},
		{"entering the kernel", kernelSend, []frame{k("do_syscall_64"), g("internal/runtime/syscall/linux.Syscall6"), g(netpollName + "sendto"), g("main.(*conn).flush")}},
		{"entering it to change interest", kernelEpollControl, []frame{k("entry_SYSCALL_64_after_hwframe"), g("syscall.RawSyscall6"), g(netpollName + "epollControl")}},
		{"a page fault in the parser", kernelOther, []frame{k("clear_page_erms"), k("exc_page_fault"), g("main.(*conn).parse")}},
		{"an unknown kernel function", kernelOther, []frame{k("mystery"), g("main.(*conn).parse")}},
		{"a library for the parser", parsing, []frame{g("net/textproto.canonicalMIMEHeaderKey"), g("net/http.ReadRequest"), g("main.(*conn).parse"), g("main.(*conn).handle")}},
		{"the same library for the head", headMaking, []frame{g("net/textproto.canonicalMIMEHeaderKey"), g("main.(*conn).appendHead"), g("main.(*conn).respond")}},
		{"memory for the parser", goMemory, []frame{g("runtime.nextFreeFast"), g("runtime.mallocgcSmallNoscan"), g("runtime.mallocgc"), g("main.(*conn).parse")}},
		{"the collector's help in it", goCollector, []frame{g("runtime.scanobject"), g("runtime.gcDrainN"), g("runtime.gcAssistAlloc"), g("runtime.mallocgc"), g("main.(*conn).parse")}},
		{"copying of an answer", bodyCopying, []frame{g("runtime.memmove"), g(netpollName + "(*Counters).CopyBody"), g("main.(*conn).respond")}},
		{"the same as perf sees it", bodyCopying, []frame{g("runtime.memmove"), g("main.(*conn).respond"), g("main.(*conn).answer")}},
		{"copying of a head", headMaking, []frame{g("runtime.memmove"), g("main.(*conn).appendHead"), g("main.(*conn).respond")}},
		{"judge", judging, []frame{g("indexbytebody"), g(modulePath + "shared/http1.(*Judge).Scan"), g("main.(*conn).whole")}},
		{"handler", handling, []frame{g(modulePath + "shared/app.(*App).Serve"), g("main.(*conn).call")}},
		{"loop", looping, []frame{g("main.(*loop).dispatch"), g("main.(*loop).run")}},
		{"a wrapper's own code", looping, []frame{g(netpollName + "sendto"), g("main.(*conn).flush")}},
		{"a Go profile's system call", kernelSend, append([]frame{{kernelPrefix + "sendmsg", kernelCode}}, g("internal/runtime/syscall/linux.Syscall6"))},
		{"the admin listener", rest, []frame{g("runtime.mallocgc"), g("encoding/json.Marshal"), g("net/http.(*conn).serve")}},
		{"something else", rest, []frame{g("fmt.Sprintf"), g("example.com/other.Function")}},
	} {
		require.Equal(t, c.want.String(), categorise(c.frames).String(), c.name)
	}
}

// The part of a stack that two stages are compared by begins where its category does.
func TestComparedPartOfAStack(t *testing.T) {
	frames := []frame{
		{"tcp_write_xmit", kernelCode}, {"tcp_sendmsg", kernelCode}, {"__sys_sendto", kernelCode}, {"do_syscall_64", kernelCode},
		{"netpoll.sendto", projectCode}, {"main.(*conn).flush", projectCode},
	}
	c, inside := decide(frames)
	require.Equal(t, kernelSend, c)
	require.Equal(t, 3, inside)

	c, inside = decide([]frame{{"runtime.memmove", runtimeCode}, {"main.(*conn).parse", projectCode}, {"main.(*conn).handle", projectCode}})
	require.Equal(t, parsing, c)
	require.Equal(t, 2, inside)
}

// Every function of shared/netpoll that enters the kernel while requests are
// served has a system call's name here.
func TestEveryWrapperIsKnown(t *testing.T) {
	seldom := map[string]bool{ // at the start, or in the load generator
		"netpoll.bind": true, "netpoll.attachToGroup": true, "netpoll.boundPort": true, "netpoll.connect": true, "netpoll.ConnectError": true, "netpoll.startListening": true,
		"netpoll.epollCreate1": true, "netpoll.openEventfd": true, "netpoll.SetLinger0": true, "netpoll.openSocket": true, "netpoll.setOption": true,
		"netpoll.cpuClock": true, "netpoll.(*Vector).sendCut": true, "netpoll.affinity": true, "netpoll.PinThread": true,
		"netpoll.ioUringSetup": true, "netpoll.(*Ring).register": true,
	}
	files, err := filepath.Glob("../../shared/netpoll/*_linux.go")
	require.NoError(t, err)
	require.NotEmpty(t, files)
	found := 0
	for _, path := range files {
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
		require.NoError(t, err)
		for _, d := range file.Decls {
			f, ok := d.(*ast.FuncDecl)
			if !ok || f.Body == nil || !callsKernel(f.Body) {
				continue
			}
			name := "netpoll." + f.Name.Name
			if f.Recv != nil {
				name = "netpoll.(*" + f.Recv.List[0].Type.(*ast.StarExpr).X.(*ast.Ident).Name + ")." + f.Name.Name
			}
			if !seldom[name] {
				require.Contains(t, wrapperCalls, name, "%s makes a system call: give it a name in wrapperCalls", name)
				require.NotEqual(t, kernelOther, categoryOfCall(wrapperCalls[name]), name)
				found++
			}
		}
	}
	require.Greater(t, found, 8)
}

func callsKernel(body *ast.BlockStmt) (found bool) {
	ast.Inspect(body, func(n ast.Node) bool {
		if s, ok := n.(*ast.SelectorExpr); ok {
			if x, ok := s.X.(*ast.Ident); ok && x.Name == "unix" && (strings.HasPrefix(s.Sel.Name, "RawSyscall") || strings.HasPrefix(s.Sel.Name, "Syscall")) {
				found = true
			}
		}
		return true
	})
	return found
}

func TestCeiling(t *testing.T) {
	require.InDelta(t, 0.0, ceiling(0), 1e-12)
	require.InDelta(t, 1.0, ceiling(0.5), 1e-12, "half of the time for nothing: twice as fast")
	require.InDelta(t, 0.0024, ceiling(0.0024), 1e-5)
	require.True(t, math.IsInf(ceiling(1), 1))
}

func TestEveryCategoryHasItsWords(t *testing.T) {
	seen := map[string]bool{}
	for i := range categories {
		name := category(i).String()
		require.NotEmpty(t, name)
		require.NotEmpty(t, categoryNotes[i], name)
		require.LessOrEqual(t, len(name), nameWidth)
		require.False(t, seen[name])
		seen[name] = true
	}
}
