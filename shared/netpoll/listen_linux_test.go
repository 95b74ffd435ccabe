package netpoll

import (
	"net"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

var claimAndShare = ListenOptions{Claim: true, Share: true}

// wildcards makes an address to connect to of one that a listener is bound to.
var wildcards = strings.NewReplacer("0.0.0.0", "127.0.0.1", "[::]", "[::1]")

// foreign is a socket as another program might open it, with SO_REUSEADDR, bound to address.
func foreign(t *testing.T, bound string, reusePort bool) int {
	t.Helper()
	a := address(t, bound)
	fd, errno := openSocket(a.family())
	require.Zero(t, errno)
	t.Cleanup(func() { unix.Close(fd) })
	require.NoError(t, unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_REUSEADDR, 1))
	if reusePort {
		require.NoError(t, unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_REUSEPORT, 1))
	}
	require.Zero(t, bind(fd, a))
	return fd
}

func port(t *testing.T, bound string) string {
	t.Helper()
	_, port, err := net.SplitHostPort(bound)
	require.NoError(t, err)
	return port
}

func requireTaken(t *testing.T, at string, o ListenOptions) {
	t.Helper()
	before := openDescriptors(t)
	fd, bound, err := Listen(new(Counters), at, o)
	var taken *AddressInUseError
	require.ErrorAs(t, err, &taken)
	require.Equal(t, at, taken.Address)
	require.ErrorContains(t, err, "address "+at+" is taken by another process")
	require.Equal(t, -1, fd)
	require.Empty(t, bound)
	require.Equal(t, before, openDescriptors(t))
}

func TestListenOptionsAreSet(t *testing.T) {
	fd, bound := listener(t, "127.0.0.1:0", ListenOptions{})
	require.NotEqual(t, "0", port(t, bound))
	for _, option := range [][2]int{{unix.SOL_SOCKET, unix.SO_REUSEADDR}, {unix.SOL_SOCKET, unix.SO_ACCEPTCONN}, {unix.IPPROTO_TCP, unix.TCP_NODELAY}} {
		value, err := unix.GetsockoptInt(fd, option[0], option[1])
		require.NoError(t, err)
		require.NotZero(t, value)
	}
	flags, err := unix.FcntlInt(uintptr(fd), unix.F_GETFL, 0)
	require.NoError(t, err)
	require.NotZero(t, flags&unix.O_NONBLOCK)
	flags, err = unix.FcntlInt(uintptr(fd), unix.F_GETFD, 0)
	require.NoError(t, err)
	require.NotZero(t, flags&unix.FD_CLOEXEC)
}

func TestReusePortIsSetOnlyToShare(t *testing.T) {
	for _, c := range []struct {
		options ListenOptions
		want    bool
	}{{ListenOptions{}, false}, {ListenOptions{Claim: true}, false}, {ListenOptions{Share: true}, true}, {claimAndShare, true}} {
		fd, _ := listener(t, "127.0.0.1:0", c.options)
		value, err := unix.GetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_REUSEPORT)
		require.NoError(t, err)
		require.Equal(t, c.want, value != 0)
	}
}

func TestSharedListenersShareConnections(t *testing.T) {
	for _, at := range []string{"127.0.0.1:0", "[::1]:0", "0.0.0.0:0", "[::]:0"} {
		t.Run(at, func(t *testing.T) {
			if at[0] == '[' {
				needIPv6(t)
			}
			first, bound := listener(t, at, claimAndShare)
			listeners := []int{first}
			for range 3 {
				fd, joined := listener(t, bound, ListenOptions{Share: true})
				require.Equal(t, bound, joined)
				listeners = append(listeners, fd)
			}
			target := wildcards.Replace(bound)
			const connections = 200
			for range connections {
				dial(t, Address{}, target)
			}
			accepted := 0
			for _, l := range listeners {
				mine := 0
				for {
					fd, err := Accept(new(Counters), l)
					if err != nil {
						require.Equal(t, ErrWouldBlock, err)
						break
					}
					require.NoError(t, unix.Close(fd))
					mine++
				}
				require.NotZero(t, mine, "the kernel spreads them by a hash")
				accepted += mine
			}
			require.Equal(t, connections, accepted)
		})
	}
}

func TestTakenAddress(t *testing.T) {
	for name, mine := range map[string]ListenOptions{"alone": {}, "claim": {Claim: true}, "claim and share": claimAndShare} {
		t.Run(name, func(t *testing.T) {
			for _, reusePort := range []bool{false, true} {
				fd := foreign(t, "127.0.0.1:0", reusePort)
				require.NoError(t, unix.Listen(fd, 1))
				name, err := unix.Getsockname(fd)
				require.NoError(t, err)
				bound := net.JoinHostPort("127.0.0.1", strconv.Itoa(name.(*unix.SockaddrInet4).Port))
				requireTaken(t, bound, mine)
				requireTaken(t, "0.0.0.0:"+port(t, bound), mine)
				requireTaken(t, ":"+port(t, bound), mine)
			}
			_, group := listener(t, "127.0.0.1:0", claimAndShare)
			listener(t, group, ListenOptions{Share: true})
			requireTaken(t, group, mine)
		})
	}
	_, bound := listener(t, "127.0.0.1:0", ListenOptions{Claim: true})
	requireTaken(t, bound, ListenOptions{Share: true})
}

func TestOverlapJoinsWithoutClaim(t *testing.T) {
	_, bound := listener(t, "127.0.0.1:0", claimAndShare)
	_, again := listener(t, bound, ListenOptions{Share: true})
	require.Equal(t, bound, again)
}

func TestTwoThatStartAtOnce(t *testing.T) {
	// The other has bound the address but does not listen yet.
	early := foreign(t, "127.0.0.1:0", false)
	name, err := unix.Getsockname(early)
	require.NoError(t, err)
	listener(t, net.JoinHostPort("127.0.0.1", strconv.Itoa(name.(*unix.SockaddrInet4).Port)), claimAndShare)
	require.Equal(t, syscall.EADDRINUSE, unix.Listen(early, 1), "it came second")
}

func TestSecondStartAtOnce(t *testing.T) {
	l, bound := listener(t, "127.0.0.1:0", claimAndShare)
	client := dial(t, Address{}, bound)
	await(t, l, unix.POLLIN)
	server, err := Accept(new(Counters), l)
	require.NoError(t, err)
	// The side that closes first keeps the port in TIME_WAIT.
	require.NoError(t, unix.Close(server))
	await(t, client, unix.POLLIN)
	require.NoError(t, unix.Close(client))
	require.NoError(t, unix.Close(l))
	_, again := listener(t, bound, claimAndShare)
	require.Equal(t, bound, again)
}

func TestWildcardTakesBothFamilies(t *testing.T) {
	needIPv6(t)
	for _, at := range []string{":0", "[::]:0"} {
		l, bound := listener(t, at, ListenOptions{})
		require.True(t, strings.HasPrefix(bound, "[::]:"), bound)
		dial(t, Address{}, "127.0.0.1:"+port(t, bound))
		dial(t, Address{}, "[::1]:"+port(t, bound))
		dial(t, Address{}, ":"+port(t, bound))
		for range 3 {
			await(t, l, unix.POLLIN)
			fd, err := Accept(new(Counters), l)
			require.NoError(t, err)
			require.NoError(t, unix.Close(fd))
		}
	}
}

func TestWildcardWithoutIPv6(t *testing.T) {
	injectFaults(t, CallSocket, fail(unix.EAFNOSUPPORT)...)
	_, bound := listener(t, ":0", ListenOptions{})
	require.True(t, strings.HasPrefix(bound, "0.0.0.0:"), bound)
}

func TestListenErrorsAreOneClearLine(t *testing.T) {
	for at, want := range map[string]string{
		"nonsense":       `bad address "nonsense": write host:port`,
		"127.0.0.1:x":    `the port must be a number`,
		"192.0.2.1:8080": `address 192.0.2.1:8080 is not one of this machine's`,
	} {
		fd, bound, err := Listen(new(Counters), at, claimAndShare)
		require.ErrorContains(t, err, want)
		require.NotContains(t, err.Error(), "\n")
		require.Equal(t, -1, fd)
		require.Empty(t, bound)
	}
	injectFaults(t, CallBind, fail(unix.EACCES)...)
	_, _, err := Listen(new(Counters), "127.0.0.1:80", claimAndShare)
	require.ErrorIs(t, err, syscall.EACCES)
	require.ErrorContains(t, err, "address 127.0.0.1:80 is not open to this user")
}

func TestListenThatFailsHoldsNothing(t *testing.T) {
	for _, fault := range []struct {
		call    Call
		answers []answer
		options ListenOptions
		want    error
	}{
		{CallSocket, fail(unix.EMFILE), claimAndShare, syscall.EMFILE},
		{CallSocket, fail(unix.EAFNOSUPPORT), claimAndShare, syscall.EAFNOSUPPORT},
		{CallSetsockopt, fail(unix.ENOMEM), claimAndShare, syscall.ENOMEM},
		{CallSetsockopt, []answer{{}, {err: unix.ENOBUFS}}, claimAndShare, syscall.ENOBUFS},
		{CallSetsockopt, []answer{{}, {}, {}, {err: unix.ENOPROTOOPT}}, claimAndShare, ErrShareRefused},
		{CallSetsockopt, []answer{{}, {}, {}, {err: unix.ENOPROTOOPT}}, ListenOptions{Share: true}, ErrShareRefused},
		{CallSetsockopt, []answer{{}, {}, {}, {err: unix.ENOMEM}}, ListenOptions{Share: true}, syscall.ENOMEM},
		{CallBind, fail(unix.EADDRINUSE), claimAndShare, syscall.EADDRINUSE},
		{CallBind, fail(unix.EINVAL), claimAndShare, syscall.EINVAL},
		{CallListen, fail(unix.EADDRINUSE), claimAndShare, syscall.EADDRINUSE},
		{CallGetsockname, fail(unix.ENOBUFS), claimAndShare, syscall.ENOBUFS},
	} {
		t.Run(fault.call.String()+" "+fault.want.Error(), func(t *testing.T) {
			before := openDescriptors(t)
			injectFaults(t, fault.call, fault.answers...)
			var c Counters
			fd, _, err := Listen(&c, "127.0.0.1:0", fault.options)
			require.ErrorIs(t, err, fault.want)
			require.NotContains(t, err.Error(), "\n")
			require.Equal(t, -1, fd)
			require.Equal(t, before, openDescriptors(t))
		})
	}
}
