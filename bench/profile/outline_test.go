package profile

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/pprof/profile"
	"github.com/stretchr/testify/require"
)

func TestOutlineOfAStack(t *testing.T) {
	k := func(names ...string) (out []frame) {
		for _, n := range names {
			out = append(out, frame{n, kernelCode})
		}
		return out
	}
	g := func(names ...string) (out []frame) {
		for _, n := range names {
			out = append(out, frame{shorten(n), kindOf(n, false)})
		}
		return out
	}
	join := func(parts ...[]frame) (out []frame) {
		for _, p := range parts {
			out = append(out, p...)
		}
		return out
	}
	sending := g("internal/runtime/syscall/linux.Syscall6", "syscall.RawSyscall6", modulePath+"shared/netpoll.sendto", modulePath+"shared/netpoll.Send", "main.(*loop).run", "sync.(*WaitGroup).Go.func1")
	waiting := g("internal/runtime/syscall/linux.Syscall6", modulePath+"shared/netpoll.(*Poller).raw", modulePath+"shared/netpoll.(*Poller).Wait", "main.(*loop).run", "main.(*server).Start.func1")
	for _, c := range []struct {
		name, want string
		stack      []frame
	}{
		{"Go's profile ends at the call", "main.(*loop).run;netpoll.Send;[kernel] sendto", join(k(kernelPrefix+"sendto"), sending)},
		{"perf's goes on", "main.(*loop).run;netpoll.Send;[kernel] sendto", join(k("tcp_sendmsg", "__sys_sendto", "__x64_sys_sendto", "do_syscall_64"), sending)},
		{"the receiver, who is woken", "main.(*loop).run;netpoll.Send;[kernel] sendto;[kernel] softirq: the receiver's side;[kernel] waking a thread", join(k("try_to_wake_up", "sock_def_readable", "handle_softirqs", "tcp_sendmsg", "__x64_sys_sendto", "do_syscall_64"), sending)},
		{"waiting", "main.(*loop).run;netpoll.(*Poller).Wait;[kernel] epoll_pwait", join(k("ep_send_events", "__x64_sys_epoll_pwait", "do_syscall_64"), waiting)},
		{"a page fault", "main.(*conn).parse;[kernel] page faults, interrupts and others", join(k("clear_page_erms", "exc_page_fault"), g("main.(*conn).parse"))},
		{"a call of the runtime's own", "runtime.sysmon;[kernel] nanosleep", join(k("__x64_sys_nanosleep", "do_syscall_64"), g("runtime.usleep", "runtime.sysmon"))},
		{"one without a name", "main.main;[kernel] other system calls", join(k(kernelPrefix+anyCall), g("internal/runtime/syscall/linux.Syscall6", "main.main"))},
		{"the runtime within itself", "main.(*conn).parse;net/http.readRequest;runtime.mallocgc", g("runtime.nextFreeFast", "runtime.mallocgcSmallNoscan", "runtime.mallocgc", "net/http.readRequest", "main.(*conn).parse")},
		{"whoever records", "", g("runtime.mallocgc", "net/http.(*conn).serve", "net/http.(*Server).Serve.gowrap3")},
	} {
		require.Equal(t, c.want, strings.Join(outlined(c.stack), ";"), c.name)
	}
}

// Nothing of a recording is lost but the admin listener, and no layer of a wrapper is kept.
func TestOutlineIsComplete(t *testing.T) {
	for _, tool := range []string{"perf", "go"} {
		r := recorded(t, tool)
		o, err := ReadOutline(filepath.Join("testdata", "stage0-"+tool+".pb.gz"))
		require.NoError(t, err)
		var sum, admin int64
		for stack, time := range o.Time {
			sum += time
			for name := range strings.SplitSeq(stack, ";") {
				require.NotRegexp(t, `syscall|Syscall6|sendto$`, strings.TrimPrefix(name, inKernel+"sendto"))
			}
		}
		for _, s := range r.stacks {
			if isAdmin(s.frames) {
				admin += s.weight
			}
		}
		require.Equal(t, r.weight, sum+admin, tool)
	}
	_, err := outlineOf(&profile.Profile{})
	require.ErrorIs(t, err, errNoSamples)
	broken := filepath.Join(t.TempDir(), "broken")
	require.NoError(t, os.WriteFile(broken, []byte("no profile"), 0o600))
	_, err = ReadOutline(broken)
	require.ErrorContains(t, err, "damaged or cut short")
}

func TestKindOfAName(t *testing.T) {
	for name, want := range map[string]kind{
		"runtime.mallocgc": runtimeCode, "gcWriteBarrier": runtimeCode, "net/http.ReadRequest": libraryCode, "http.ReadRequest": libraryCode,
		"evanphx/wildcat.(*HTTPParser).Parse": libraryCode, "main.(*conn).parse": projectCode, "netpoll.Send": projectCode, "http1.(*Judge).Scan": projectCode, "app.(*App).Serve": projectCode,
	} {
		require.Equal(t, want, kindOf(name, false), name)
	}
}
