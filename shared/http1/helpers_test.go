package http1

import (
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// judged is all that a judge says about an input.
type judged struct {
	verdict Verdict
	at      int // the length of a complete head, or the offset of the byte that makes the fault certain
	fault   Fault
	head    Head
}

const testMaxBody = 1000

// judge feeds the first cuts[0] bytes of the input, then the first cuts[1], and so on. Small inputs move to
// another place in memory each time, and what was there before is overwritten.
func judge(t testing.TB, in []byte, maxBody int64, cuts ...int) judged {
	t.Helper()
	var j Judge
	j.Reset(maxBody)
	startLooking()
	var got judged
	before := 0
	for _, cut := range cuts {
		b := in[:cut:cut]
		if len(in) <= 256 {
			b = slices.Clone(b)
		}
		verdict := j.Scan(b)
		if got.verdict != Incomplete {
			if verdict != got.verdict {
				t.Fatalf("verdict %v became %v", got.verdict, verdict)
			}
			continue
		}
		got.verdict = verdict
		switch verdict {
		case Incomplete:
			if j.at != cut {
				t.Fatalf("incomplete after %d of %d bytes", j.at, cut)
			}
		case Complete:
			got.head = *j.Head()
			got.at = got.head.Length
			if got.at <= before || got.at > cut {
				t.Fatalf("head of %d bytes found between %d and %d", got.at, before, cut)
			}
		case Faulty:
			got.at = j.at
			if got.at < before || got.at >= cut {
				t.Fatalf("fault at byte %d found between %d and %d", got.at, before, cut)
			}
			got.fault = j.Fault()
		}
		if len(in) <= 256 {
			for i := range b {
				b[i] = 0xee
			}
		}
		before = cut
	}
	requireLinear(t, len(in))
	return got
}

// judgeEveryWay judges the input in one piece, byte by byte and cut in two (everywhere, or in some 300
// places of a long input), and requires the same of each.
func judgeEveryWay(t testing.TB, in []byte, maxBody int64) judged {
	t.Helper()
	want := judge(t, in, maxBody, len(in))
	bytes := make([]int, len(in)+1)
	for n := range bytes {
		bytes[n] = n
	}
	requireSame(t, in, want, judge(t, in, maxBody, bytes...))
	for n := 0; n < len(in); n += 1 + len(in)/300 {
		requireSame(t, in, want, judge(t, in, maxBody, n, len(in)))
	}
	return want
}

func requireSame(t testing.TB, in []byte, want, got judged) {
	t.Helper()
	if got != want {
		require.Equal(t, want, got, "%q", in)
	}
}

// mark stands in a test's input before the byte that makes the fault certain.
const mark = "▸"

// unmark takes the mark out of an input; without one the byte is the last.
func unmark(in string) ([]byte, int) {
	before, after, found := strings.Cut(in, mark)
	if !found {
		return []byte(in), len(in) - 1
	}
	return []byte(before + after), len(before)
}

// judgeCase is an input, what follows from it, and the rule that says so.
type judgeCase struct {
	name string
	rule string // section of RFC 9112 unless another is named
	in   string // with a mark before the byte that decides, if that is not the last
	want int    // status of the fault; 0 for a valid head
}

func runJudgeCases(t *testing.T, cases []judgeCase) {
	t.Helper()
	names := map[string]bool{}
	for _, c := range cases {
		require.False(t, names[c.name], "two cases of the name %s", c.name)
		names[c.name] = true
		t.Run(c.name, func(t *testing.T) {
			in, at := unmark(c.in)
			got := judgeEveryWay(t, in, testMaxBody)
			require.Equal(t, c.want, got.fault.Status, "%s: %s, at %d", c.rule, got.fault.Reason, got.at)
			if c.want == 0 {
				require.Equal(t, Complete, got.verdict, c.rule)
				require.Equal(t, len(in), got.at, c.rule)
				return
			}
			require.Equal(t, Faulty, got.verdict, c.rule)
			require.Equal(t, at, got.at, "%s: %s", c.rule, got.fault.Reason)
			require.NotEmpty(t, got.fault.Reason)
			require.Equal(t, c.want == 405, got.fault.Allow != "")
			// What follows the deciding byte changes nothing.
			require.Equal(t, got, judge(t, append(in[:at+1:at+1], "\r\n\x00\r\n\r\n"...), testMaxBody, at+7))
		})
	}
}

// get is a valid head around a target; with is one around field lines; hosted one around a Host value.
func get(target string) string { return "GET " + target + " HTTP/1.1\r\nHost: a\r\n\r\n" }

func with(lines string) string { return "POST / HTTP/1.1\r\nHost: a\r\n" + lines + "\r\n" }

func with10(lines string) string { return "POST / HTTP/1.0\r\n" + lines + "\r\n" }

func hosted(value string) string { return "GET / HTTP/1.1\r\nHost: " + value + "\r\n\r\n" }
