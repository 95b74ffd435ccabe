package profile

import (
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

const script = `11521     500250 cpu-clock: 
	ffffffff8206e8cb tcp_sendmsg ([kernel.kallsyms])
	ffffffff8225aa01 do_syscall_64 ([kernel.kallsyms])
	            b34e internal/runtime/syscall/linux.Syscall6 (/somewhere/stage2-conn-timer)
	          29aa5b slices.pdqsort[go.shape.struct { net/http.key string }] (/somewhere/stage2-conn-timer)
	           92361 runtime.goexit.abi0 (/somewhere/stage2-conn-timer)

11521     500250 cpu-clock: 
	ffffffff8206e8cb tcp_sendmsg ([kernel.kallsyms])
	ffffffff8225aa01 do_syscall_64 ([kernel.kallsyms])
	            b34e internal/runtime/syscall/linux.Syscall6 (/somewhere/stage2-conn-timer)
	          29aa5b slices.pdqsort[go.shape.struct { net/http.key string }] (/somewhere/stage2-conn-timer)

11522     500250 cpu-clock: 
	    7ffd0a8d9a3f [unknown] ([unknown])

11522     500250 cpu-clock: 

`

func TestPerfScriptIsRead(t *testing.T) {
	p, err := parseScript(strings.NewReader(script), softwareEvent, nil)
	require.NoError(t, err)
	require.Len(t, p.Sample, 2, "equal stacks are one, and a sample without a stack is none")
	require.Equal(t, []int64{2, 1000500}, p.Sample[0].Value)
	r, err := newRecord(p, "stage2-conn-timer", "hello", "perf", outcome{requests: 1})
	require.NoError(t, err)
	require.Equal(t, []frame{
		{"tcp_sendmsg", kernelCode}, {"do_syscall_64", kernelCode}, {"internal/runtime/syscall/linux.Syscall6", runtimeCode},
		{"slices.pdqsort[go.shape.struct { net/http.key string }]", libraryCode},
	}, r.stacks[0].frames, "with blanks in a name, and without the bottom of the goroutine")
	require.Equal(t, int64(3), r.samples)
}

// With kernel.kptr_restrict the kernel's functions have no names; the call that led there tells
// what it is.
func TestNamelessKernel(t *testing.T) {
	text := regexp.MustCompile(`(ffffffff\w+) \S+ \(\S+\)`).ReplaceAllString(script, "$1 [unknown] ([unknown])")
	text = strings.ReplaceAll(text, "slices.pdqsort[go.shape.struct { net/http.key string }]", modulePath+"shared/netpoll.sendto")
	p, err := parseScript(strings.NewReader(text), softwareEvent, nil)
	require.NoError(t, err)
	r, err := newRecord(p, "stage2-conn-timer", "hello", "perf", outcome{requests: 1})
	require.NoError(t, err)
	require.True(t, r.kernelIsNameless())
	require.Equal(t, kernelSend, categorise(r.stacks[0].frames))
	require.False(t, recorded(t, "perf").kernelIsNameless())
}

func TestDamagedPerfScriptIsRefused(t *testing.T) {
	for name, text := range map[string]string{
		"no header":      "hello there\n",
		"no weight":      "11521 many cpu-clock:\n",
		"no address":     "11521 500250 cpu-clock: \n\tzzzz name (image)\n",
		"a frame is cut": script[:100],
	} {
		_, err := parseScript(strings.NewReader(text), softwareEvent, nil)
		require.ErrorContains(t, err, "not understood", name)
	}
	_, err := parseScript(strings.NewReader(""), softwareEvent, nil)
	require.ErrorIs(t, err, errNoSamples)
}

func TestDamagedProfileIsRefused(t *testing.T) {
	for _, b := range [][]byte{nil, []byte("not a profile"), {0x1f, 0x8b, 8, 0, 0}} {
		_, err := parseProfile(b)
		require.ErrorContains(t, err, "damaged or cut short")
	}
}

func TestStraceReportIsRead(t *testing.T) {
	calls, err := parseStrace(`% time     seconds  usecs/call     calls    errors syscall
------ ----------- ----------- --------- --------- ----------------
 62.66   17.992624         876     20523           sendto
 33.83    9.713727         469     20668        69 recvfrom
  0.15    0.042617         210       202           epoll_ctl
------ ----------- ----------- --------- --------- ----------------
100.00   27.748968         670     41393        69 total
`)
	require.NoError(t, err)
	require.Len(t, calls, 3)
	require.Equal(t, straceCount{calls: 20668, share: 0.3383}, calls["recvfrom"])
	require.Equal(t, int64(20523), calls["sendto"].calls)

	_, err = parseStrace("")
	require.ErrorContains(t, err, "no system call")
	_, err = parseStrace(" 62.66   17.992624         876     2o523           sendto\n")
	require.ErrorContains(t, err, "not understood")
}

func TestPerfStatIsRead(t *testing.T) {
	counts, err := parseStat(`123456789,,instructions,1000,100.00,1.50,insn per cycle
82304526,,cycles,1000,100.00,,
<not supported>,,cache-misses,0,100.00,,
4711,,context-switches,1000,100.00,,
`)
	require.NoError(t, err)
	require.Equal(t, statCounts{counts: map[string]float64{"instructions": 123456789, "cycles": 82304526, "context-switches": 4711}}, counts)

	var out strings.Builder
	(&StatTable{Workload: "hello", Servers: []StatServer{counts.of("stage3-native-parser", 1000)}}).text(&out)
	require.Contains(t, out.String(), "123457")
	require.Contains(t, out.String(), "1.50", "instructions per cycle")
	require.Contains(t, out.String(), "cache misses")

	counts, err = parseStat("<not supported>,,instructions,0,100.00,,\n<not supported>,,cycles,0,100.00,,\n4711,,page-faults,1,100.00,,\n")
	require.NoError(t, err)
	out.Reset()
	(&StatTable{Workload: "hello", Servers: []StatServer{counts.of("stage3-native-parser", 1000)}}).text(&out)
	require.Contains(t, out.String(), "no hardware counters")
	require.NotContains(t, out.String(), "perf_event_paranoid")

	// Without permission perf counts nothing that happens in the kernel, and says 0.
	counts, err = parseStat("900,,instructions:u,1,100.00,,\n0,,context-switches:u,1,100.00,,\n0,,cpu-migrations:u,1,100.00,,\n46,,page-faults:u,1,100.00,,\n")
	require.NoError(t, err)
	require.Equal(t, statCounts{counts: map[string]float64{"instructions": 900, "page-faults": 46}, userOnly: true}, counts)
	out.Reset()
	(&StatTable{Workload: "hello", Servers: []StatServer{counts.of("stage3-native-parser", 1000)}}).text(&out)
	require.Contains(t, out.String(), "sudo sysctl kernel.perf_event_paranoid=1")
	require.Regexp(t, `Not counted here:[^.]*context switches`, out.String())

	_, err = parseStat("perf: command not understood\n")
	require.ErrorContains(t, err, "not understood")
}

func TestWordsAndNumbers(t *testing.T) {
	require.Equal(t, "0.2%", percent(0.0024))
	require.Equal(t, "9.9%", percent(0.0994))
	require.Equal(t, "10%", percent(0.0996))
	require.Equal(t, "a b", oneLine(" a\n\tb "))
}
