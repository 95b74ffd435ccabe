package http1

import (
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// framed is all that Body says about an input.
type framed struct {
	out     string
	used    int // the length of a complete body, or the offset of the byte that makes the fault certain
	verdict Verdict
	fault   Fault
}

// frame feeds the input in pieces that end at the cuts. In place, all of it is in one array, after a head,
// and the body is gathered where it begins; else each piece is in an array of its own.
func frame(t testing.TB, h *Head, in []byte, maxBody int64, inPlace bool, cuts ...int) framed {
	t.Helper()
	const head = 5
	buffer := append([]byte("head\n"), in...)
	var out []byte
	if inPlace {
		out = buffer[head:head]
	}
	var b Body
	b.Reset(h, maxBody)
	startLooking()
	var got framed
	from := 0
	for _, cut := range cuts {
		src := slices.Clip(buffer[head+from : head+cut])
		if !inPlace {
			src = slices.Clip(slices.Clone(src))
		}
		var used int
		if out, used, got.verdict = b.Append(out, src); inPlace && len(out) > 0 && &out[0] != &buffer[head] {
			t.Fatal("moved out of its array")
		}
		got.used += used
		if got.verdict != Incomplete {
			break
		}
		if used != len(src) {
			t.Fatalf("incomplete after %d of %d bytes", used, len(src))
		}
		from = cut
	}
	requireLinear(t, len(in))
	if got.used != cuts[len(cuts)-1] && got.verdict == Incomplete {
		t.Fatal("bytes left")
	}
	again, used, verdict := b.Append(out, nil)
	if used != 0 || verdict != got.verdict || len(again) != len(out) {
		t.Fatalf("after %v: %v", got.verdict, verdict)
	}
	if inPlace && string(buffer[head+got.used:]) != string(in[got.used:]) {
		t.Fatal("bytes after the body were changed")
	}
	if string(buffer[:head]) != "head\n" {
		t.Fatal("bytes before the body were changed")
	}
	got.out, got.fault = string(out), b.Fault()
	return got
}

// frameEveryWay takes the input whole, byte by byte and cut in two (everywhere, or in some 300 places of a
// long input), in place and not, and requires the same of each.
func frameEveryWay(t testing.TB, h *Head, in []byte, maxBody int64) framed {
	t.Helper()
	want := frame(t, h, in, maxBody, false, len(in))
	bytes := make([]int, len(in)+1)
	for n := range bytes {
		bytes[n] = n
	}
	for _, inPlace := range []bool{false, true} {
		same := func(cuts ...int) {
			t.Helper()
			if got := frame(t, h, in, maxBody, inPlace, cuts...); got != want {
				require.Equal(t, want, got, "%q in place: %v", in, inPlace)
			}
		}
		same(len(in))
		same(bytes...)
		for n := 0; n < len(in); n += 1 + len(in)/300 {
			same(n, len(in))
		}
	}
	return want
}

func TestChunks(t *testing.T) {
	const last = "0\r\n\r\n"
	x := strings.Repeat("x", testMaxBody)
	for _, c := range []struct {
		name, rule string
		in         string // with a mark before the byte that makes a fault certain, or after the body
		out        string
		want       int
	}{
		{"nothing", "7.1", "0\r\n\r\n▸GET", "", 0},
		{"one chunk", "7.1", "5\r\nhello\r\n0\r\n\r\n▸GET", "hello", 0},
		{"two chunks", "7.1", "2\r\nhe\r\n3\r\nllo\r\n" + last, "hello", 0},
		{"any bytes", "7.1", "6\r\n\r\n\x000\r\n\r\n" + last, "\r\n\x000\r\n", 0},
		{"chunk of one", "7.1", "1\r\nx\r\n" + last, "x", 0},
		{"small letters", "7.1", "a\r\n0123456789\r\n" + last, "0123456789", 0},
		{"capitals", "7.1", "A\r\n0123456789\r\n" + last, "0123456789", 0},
		{"two digits", "7.1", "1f\r\n" + x[:31] + "\r\n" + last, x[:31], 0},
		{"zeros first", "7.1", "000000000000000000000000000000000005\r\nhello\r\n" + last, "hello", 0},
		{"many zeros for the last", "7.1", "00000000000000000000\r\n\r\n", "", 0},
		{"the limit", "RFC 9110, 15.5.14", "3e8\r\n" + x + "\r\n" + last, x, 0},
		{"the limit in two", "RFC 9110, 15.5.14", "1\r\nx\r\n3e7\r\n" + x[1:] + "\r\n" + last, x, 0},
		{"over the limit by one", "RFC 9110, 15.5.14", "3e▸9\r\n", "", 413},
		{"over the limit by a digit", "RFC 9110, 15.5.14", "3e8▸0\r\n", "", 413},
		{"over the limit in the second", "RFC 9110, 15.5.14", "1\r\nx\r\n3e▸8\r\n", "x", 413},
		{"over the limit after it", "RFC 9110, 15.5.14", "3e8\r\n" + x + "\r\n▸1\r\n", x, 413},
		{"over 2^63", "7.1", "80▸00000000000000\r\n", "", 413},
		{"over 2^64", "7.1", "100▸00000000000000005\r\n", "", 413},

		{"no size", "7.1", "▸\r\n", "", 400},
		{"empty extension for a size", "7.1", "▸;a\r\n", "", 400},
		{"blank before the size", "7.1", "▸ 5\r\n", "", 400},
		{"sign", "7.1", "▸+5\r\n", "", 400},
		{"minus", "7.1", "▸-5\r\n", "", 400},
		{"prefix of hexadecimal", "7.1", "0▸x5\r\n", "", 400},
		{"byte before the digits", "7.1", "▸/\r\n", "", 400},
		{"byte after the digits", "7.1", "▸:\r\n", "", 400},
		{"byte before the capitals", "7.1", "5▸@\r\n", "", 400},
		{"byte after the capitals", "7.1", "5▸G\r\n", "", 400},
		{"byte before the small letters", "7.1", "5▸`\r\n", "", 400},
		{"byte after the small letters", "7.1", "5▸g\r\n", "", 400},
		{"zero byte", "7.1", "5▸\x00\r\n", "", 400},
		{"comma", "7.1", "5▸,5\r\n", "", 400},
		{"bare line feed after the size", "2.2", "5▸\nhello", "", 400},
		{"bare carriage return after the size", "2.2", "5\r▸hello", "", 400},
		{"two carriage returns after the size", "2.2", "5\r▸\r\n", "", 400},
		{"blank after the size", "7.1.1", "5 ▸\r\nhello", "", 400},
		{"blanks in the size", "7.1", "5 ▸5\r\n", "", 400},
		{"data too long", "7.1", "5\r\nhello▸!\r\n", "hello", 400},
		{"data too short", "7.1", "5\r\nhell\r▸\n0\r\n", "hell\r", 400},
		{"bare line feed after the data", "7.1", "5\r\nhello▸\n0\r\n\r\n", "hello", 400},
		{"bare carriage return after the data", "7.1", "5\r\nhello\r▸0\r\n", "hello", 400},
		{"next size without a line end", "7.1", "5\r\nhello▸0\r\n\r\n", "hello", 400},

		{"extension", "7.1.1", "5;a\r\nhello\r\n" + last, "hello", 0},
		{"extension with a value", "7.1.1", "5;a=b\r\nhello\r\n" + last, "hello", 0},
		{"extension with a quoted value", "7.1.1", "5;a=\"b;c\\\"\\\\\t \x80\"\r\nhello\r\n" + last, "hello", 0},
		{"extension with an empty quoted value", "7.1.1", "5;a=\"\"\r\nhello\r\n" + last, "hello", 0},
		{"extensions", "7.1.1", "5;a;b=c;d=\"e\";f\r\nhello\r\n0;g\r\n\r\n", "hello", 0},
		{"blanks around everything", "7.1.1", "5 \t;\t a\t =  b \t; c ; d = \"e\"\t;f\r\nhello\r\n" + last, "hello", 0},
		{"every token byte", "RFC 9110, 5.6.2", "5;!#$%&'*+-.^_`|~09azAZ=!#$%&'*+-.^_`|~09azAZ\r\nhello\r\n" + last, "hello", 0},
		{"no extension name", "7.1.1", "5;▸\r\n", "", 400},
		{"no extension name before a value", "7.1.1", "5;▸=a\r\n", "", 400},
		{"two semicolons", "7.1.1", "5;▸;a\r\n", "", 400},
		{"no extension after the second semicolon", "7.1.1", "5;a;▸\r\n", "", 400},
		{"blank after an extension", "7.1.1", "5;a ▸\r\n", "", 400},
		{"blank after a value", "7.1.1", "5;a=b ▸\r\n", "", 400},
		{"blank after a quoted value", "7.1.1", "5;a=\"b\" ▸\r\n", "", 400},
		{"two names", "7.1.1", "5;a ▸b\r\n", "", 400},
		{"two values", "7.1.1", "5;a=b ▸c\r\n", "", 400},
		{"text after a quoted value", "7.1.1", "5;a=\"b\"▸c\r\n", "", 400},
		{"second value", "7.1.1", "5;a=b▸=c\r\n", "", 400},
		{"no value", "7.1.1", "5;a=▸\r\n", "", 400},
		{"no value before another extension", "7.1.1", "5;a=▸;b\r\n", "", 400},
		{"quoted name", "7.1.1", "5;▸\"a\"\r\n", "", 400},
		{"name with a separator", "7.1.1", "5;a▸(\r\n", "", 400},
		{"value with a separator", "7.1.1", "5;a=b▸/\r\n", "", 400},
		{"byte beyond ASCII in a name", "7.1.1", "5;▸\x80\r\n", "", 400},
		{"open quote", "7.1.1", "5;a=\"b▸\r\n", "", 400},
		{"control byte in quotes", "7.1.1", "5;a=\"b▸\x01\"\r\n", "", 400},
		{"DEL in quotes", "7.1.1", "5;a=\"b▸\x7f\"\r\n", "", 400},
		{"control byte in a pair", "7.1.1", "5;a=\"\\▸\x00\"\r\n", "", 400},
		{"line end in a pair", "7.1.1", "5;a=\"\\▸\r\n", "", 400},
		{"bare line feed in a name", "2.2", "5;a▸\nhello", "", 400},
		{"bare line feed in a value", "2.2", "5;a=b▸\nhello", "", 400},
		{"bare line feed in quotes", "2.2", "5;a=\"▸\n\"\r\nhello", "", 400},
		{"bare line feed after a semicolon", "2.2", "5;▸\nhello", "", 400},
		{"bare carriage return in a name", "2.2", "5;a\r▸b\r\n", "", 400},
		{"bare carriage return in quotes", "2.2", "5;a=\"▸\r\"\r\n", "", 400},

		{"line of 256 bytes", "7.1.1", "5;" + x[:254] + "\r\nhello\r\n" + last, "hello", 0},
		{"line of 257 bytes", "7.1.1", "5;" + x[:254] + "▸x\r\nhello\r\n" + last, "", 400},
		{"size of 256 bytes", "7.1", strings.Repeat("0", 255) + "5\r\nhello\r\n" + last, "hello", 0},
		{"size of 257 bytes", "7.1", strings.Repeat("0", 256) + "▸5\r\n", "", 400},
		{"size of 257 bytes that gets too large", "7.1", strings.Repeat("0", 253) + "3e8▸0\r\n", "", 400},
		{"size of 256 bytes that gets too large", "7.1", strings.Repeat("0", 252) + "3e8▸0\r\n", "", 413},
		{"quoted value of 257 bytes", "7.1.1", "5;a=\"" + x[:251] + "▸\"\r\n", "", 400},
		{"257th byte that is a fault", "7.1.1", "5;" + x[:254] + "▸\n", "", 400},
		{"lines of 256 bytes again", "7.1.1", "1;" + x[:254] + "\r\na\r\n1;" + x[:254] + "\r\nb\r\n0;" + x[:254] + "\r\n\r\n", "ab", 0},

		{"trailer", "7.1.2", "1\r\nx\r\n0\r\nA: b\r\n\r\n▸G", "x", 0},
		{"trailers", "7.1.2", "0\r\nA: b\r\nC:\r\nD:\te \x80\r\n\r\n▸G", "", 0},
		{"trailers that would matter in a head", "6.5.1", "0\r\nHost: (\r\nContent-Length: x\r\nTransfer-Encoding: x\r\nExpect: x\r\n\r\n▸G", "", 0},
		{"hundred trailers", "7.1.2", "0\r\n" + strings.Repeat("A: b\r\n", 100) + "\r\n▸G", "", 0},
		{"trailer with a blank first", "5.2", "0\r\n▸ A: b\r\n\r\n", "", 400},
		{"folded trailer", "5.2", "0\r\nA: b\r\n▸\tc\r\n\r\n", "", 400},
		{"trailer without a colon", "5", "0\r\nA▸\r\n\r\n", "", 400},
		{"trailer without a name", "5.1", "0\r\n▸: b\r\n\r\n", "", 400},
		{"trailer with a blank before the colon", "5.1", "0\r\nA▸ : b\r\n\r\n", "", 400},
		{"control byte in a trailer", "RFC 9110, 5.5", "0\r\nA: ▸\x00\r\n\r\n", "", 400},
		{"bare line feed in a trailer", "2.2", "0\r\nA: b▸\n\r\n", "", 400},
		{"bare carriage return in a trailer", "2.2", "0\r\nA: b\r▸c\r\n", "", 400},
		{"bare line feed for the last line", "2.2", "0\r\n▸\n", "", 400},
		{"bare carriage return for the last line", "2.2", "0\r\n\r▸x", "", 400},
		{"bare line feed after the last chunk", "2.2", "0▸\n\r\n", "", 400},
		{"trailers of the limit", "7.1.2", "0\r\nA: " + strings.Repeat("x", MaxTrailers-7) + "\r\n\r\n▸G", "", 0},
		{"trailers over the limit", "7.1.2", "0\r\nA: " + strings.Repeat("x", MaxTrailers-6) + "\r\n\r▸\n", "", 431},
		{"trailers without an end", "7.1.2", "0\r\nA: " + strings.Repeat("x", MaxTrailers-3) + "▸x", "", 431},
		{"fault at the limit of trailers", "7.1.2", "0\r\nA: " + strings.Repeat("x", MaxTrailers-3) + "▸\x00", "", 400},
		{"many trailers over the limit", "7.1.2", "0\r\n" + strings.Repeat("AB: c\r\n", MaxTrailers/7) + "AB▸C", "", 431},
	} {
		t.Run(c.name, func(t *testing.T) {
			in, at := unmark(c.in)
			if c.want == 0 && !strings.Contains(c.in, mark) {
				at = len(in)
			}
			got := frameEveryWay(t, &Head{Chunked: true}, in, testMaxBody)
			require.Equal(t, c.want, got.fault.Status, "%s: %s, at %d", c.rule, got.fault.Reason, got.used)
			require.Equal(t, at, got.used, "%s: %s", c.rule, got.fault.Reason)
			require.Equal(t, c.out, got.out, c.rule)
			if c.want == 0 {
				require.Equal(t, Complete, got.verdict)
				for n := range at {
					require.Equal(t, Incomplete, frame(t, &Head{Chunked: true}, in[:n], testMaxBody, true, n).verdict)
				}
				return
			}
			require.Equal(t, Faulty, got.verdict)
			require.NotEmpty(t, got.fault.Reason)
		})
	}
}

// RFC 9112, 7.1: sizes up to the largest number there is.
func TestChunkSizeNearOverflow(t *testing.T) {
	for _, c := range []struct {
		size    string
		maxBody int64
		want    Verdict
	}{
		{"7fffffffffffffff", math.MaxInt64, Incomplete},
		{"8000000000000000", math.MaxInt64, Faulty},
		{"ffffffffffffffff", math.MaxInt64, Faulty},
		{"00007fffffffffffffff", math.MaxInt64, Incomplete},
		{"7fffffffffffffff", math.MaxInt64 - 1, Faulty},
		{"7ffffffffffffffe", math.MaxInt64 - 1, Incomplete},
		{"1", 0, Faulty},
		{"0", 0, Incomplete},
		{"f", 15, Incomplete},
		{"f", 14, Faulty},
		{"10", 15, Faulty},
		{"10", 16, Incomplete},
	} {
		got := frameEveryWay(t, &Head{Chunked: true}, []byte(c.size), c.maxBody)
		require.Equal(t, c.want, got.verdict, c.size)
		if c.want == Faulty {
			require.Equal(t, 413, got.fault.Status, c.size)
			require.Equal(t, len(c.size)-1, got.used, c.size)
		}
	}
}

// RFC 9112, 6.2.
func TestDeclaredBody(t *testing.T) {
	for n := range int64(8) {
		in := []byte("helloGET")
		got := frameEveryWay(t, &Head{ContentLength: n}, in, testMaxBody)
		require.Equal(t, Complete, got.verdict)
		require.Equal(t, int(n), got.used)
		require.Equal(t, string(in[:n]), got.out)
	}
	got := frameEveryWay(t, &Head{ContentLength: 9}, []byte("helloGET"), testMaxBody)
	require.Equal(t, Incomplete, got.verdict)
	require.Equal(t, "helloGET", got.out)
}

func TestNoBody(t *testing.T) {
	var b Body
	b.Reset(&Head{}, testMaxBody)
	require.Equal(t, Fault{}, b.Fault())
	_, used, v := b.Append(nil, nil)
	require.Zero(t, used)
	require.Equal(t, Complete, v)
}

// What comes from where, and what is copied.
func TestInPlace(t *testing.T) {
	const chunks = "3\r\nabc\r\n4\r\ndefg\r\n0\r\n\r\n"
	t.Run("a declared body is not copied", func(t *testing.T) {
		buffer := []byte("headabcdefGET")
		var b Body
		b.Reset(&Head{ContentLength: 6}, testMaxBody)
		out, used, v := b.Append(buffer[4:4], buffer[4:7])
		require.Equal(t, Incomplete, v)
		require.Equal(t, 3, used)
		out, used, v = b.Append(out, buffer[7:])
		require.Equal(t, Complete, v)
		require.Equal(t, 3, used)
		require.Same(t, &buffer[4], &out[0])
		require.Equal(t, "abcdef", string(out))
		require.Equal(t, "headabcdefGET", string(buffer))
	})
	t.Run("to the front of the array", func(t *testing.T) {
		buffer := []byte("head" + chunks + "GET")
		var b Body
		b.Reset(&Head{Chunked: true}, testMaxBody)
		out, used, v := b.Append(buffer[:0], buffer[4:])
		require.Equal(t, Complete, v)
		require.Equal(t, len(chunks), used)
		require.Equal(t, "abcdefg", string(out))
		require.Same(t, &buffer[0], &out[0])
		require.Equal(t, "GET", string(buffer[4+used:]))
	})
	t.Run("to a slice that may not grow in the array", func(t *testing.T) {
		buffer := []byte("head" + chunks + "GET")
		var b Body
		b.Reset(&Head{Chunked: true}, testMaxBody)
		out, _, v := b.Append(buffer[:0:2], buffer[4:])
		require.Equal(t, Complete, v)
		require.Equal(t, "abcdefg", string(out))
		require.Equal(t, "head"+chunks+"GET", string(buffer))
	})
	t.Run("to another array", func(t *testing.T) {
		buffer := []byte(chunks)
		room := make([]byte, 2, 100)
		copy(room, "<>")
		var b Body
		b.Reset(&Head{Chunked: true}, testMaxBody)
		out, _, v := b.Append(room, buffer)
		require.Equal(t, Complete, v)
		require.Equal(t, "<>abcdefg", string(out))
		require.Same(t, &room[0], &out[0])
		require.Equal(t, chunks, string(buffer))
	})
	t.Run("no more than has arrived", func(t *testing.T) {
		var b Body
		b.Reset(&Head{ContentLength: math.MaxInt64}, math.MaxInt64)
		out, _, v := b.Append(nil, []byte("a"))
		require.Equal(t, Incomplete, v)
		require.Less(t, cap(out), 100)
		b.Reset(&Head{Chunked: true}, math.MaxInt64)
		out, _, v = b.Append(nil, []byte("7fffffffffffffff\r\na"))
		require.Equal(t, Incomplete, v)
		require.Less(t, cap(out), 100)
	})
}

// A body that is used again remembers nothing.
func TestBodyReset(t *testing.T) {
	for _, in := range []string{"5;a=\"", "x", "5\r\nhel", "0\r\nA", "0\r\nA: b\x00", "ffffffff"} {
		for _, h := range []*Head{{Chunked: true}, {ContentLength: 5}, {}} {
			var used, fresh Body
			used.Reset(&Head{Chunked: true}, testMaxBody)
			used.Append(nil, []byte(in))
			used.Reset(h, 7)
			fresh.Reset(h, 7)
			require.Equal(t, fresh, used)
		}
	}
}
