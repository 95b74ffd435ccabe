package netpoll

import (
	"bytes"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

func content(v *Vector) string {
	var b bytes.Buffer
	for i := range v.Segments() {
		b.Write(v.Segment(i))
	}
	return b.String()
}

func TestVectorSends(t *testing.T) {
	a, b := pair(t)
	var c Counters
	v := NewVector(4)
	v.Append([]byte("one "))
	v.Append(nil)
	v.Append([]byte("two "))
	v.Append([]byte("three"))
	require.Equal(t, 13, v.Len())
	require.Equal(t, 3, v.Segments())
	require.False(t, v.Full())

	n, err := v.Send(&c, a)
	require.NoError(t, err)
	require.Equal(t, 13, n)
	require.Equal(t, 13, v.Len(), "Send does not advance")
	require.Equal(t, Counters{Writes: 1, VectoredWrites: 1, WrittenBytes: 13}, c)
	v.Advance(n)
	require.Zero(t, v.Len())
	require.Zero(t, v.Segments())

	n, err = v.Send(&c, a)
	require.NoError(t, err)
	require.Zero(t, n, "an empty one makes no call")
	require.EqualValues(t, 1, c.Writes)

	buffer := make([]byte, 64)
	n, err = Receive(&c, b, buffer)
	require.NoError(t, err)
	require.Equal(t, "one two three", string(buffer[:n]))
}

func TestVectorAdvanceByEveryAmount(t *testing.T) {
	const text = "one two three"
	for first := range len(text) + 1 {
		for second := range len(text) - first + 1 {
			v := NewVector(3)
			v.Append([]byte("one "))
			v.Append([]byte("two "))
			v.Append([]byte("three"))
			v.Advance(first)
			require.Equal(t, text[first:], content(v))
			v.Advance(second)
			require.Equal(t, text[first+second:], content(v))
			require.Equal(t, len(text)-first-second, v.Len())
		}
	}
}

func TestVectorSendsWhatIsLeft(t *testing.T) {
	a, b := pair(t)
	var c Counters
	v := NewVector(3)
	v.Append([]byte("one "))
	v.Append([]byte("two "))
	v.Append([]byte("three"))
	v.Advance(6)
	require.True(t, v.Full(), "sent segments keep their room")
	n, err := v.Send(&c, a)
	require.NoError(t, err)
	require.Equal(t, 7, n)
	buffer := make([]byte, 64)
	n, err = Receive(&c, b, buffer)
	require.NoError(t, err)
	require.Equal(t, "o three", string(buffer[:n]))
}

func TestVectorForgets(t *testing.T) {
	v := NewVector(2)
	v.Append([]byte("x"))
	v.Append([]byte("y"))
	v.Advance(1)
	v.Reset()
	require.Zero(t, v.Len())
	require.Zero(t, v.Segments())
	require.Nil(t, v.message.Iov)
	for _, s := range v.segments[:cap(v.segments)] {
		require.Nil(t, s.Base)
	}
	v.Append([]byte("z"))
	require.Equal(t, "z", content(v))
}

func TestVectorMisuse(t *testing.T) {
	require.Panics(t, func() { NewVector(0) })
	require.Panics(t, func() { NewVector(1025) })
	v := NewVector(1)
	v.Append([]byte("x"))
	require.Panics(t, func() { v.Append([]byte("y")) })
	require.Panics(t, func() { v.Advance(2) })
	require.Panics(t, func() { v.Advance(-1) })
	require.Panics(t, func() { v.Segment(1) })
	require.NotPanics(t, func() { v.Append(nil) })
}

func TestVectorOfMaximalLength(t *testing.T) {
	a, b := pair(t)
	v := NewVector(1024)
	for !v.Full() {
		v.Append([]byte("x"))
	}
	n, err := v.Send(new(Counters), a)
	require.NoError(t, err)
	require.Equal(t, 1024, n)
	n, err = Receive(new(Counters), b, make([]byte, 2048))
	require.NoError(t, err)
	require.Equal(t, 1024, n)
}

func TestVectorIsCutByTheSocket(t *testing.T) {
	server, client := connection(t)
	var c Counters
	body := bytes.Repeat([]byte("0123456789abcdef"), 1<<18)
	v := NewVector(2)
	v.Append([]byte("head"))
	v.Append(body)
	total := v.Len()
	var received []byte
	buffer := make([]byte, 1<<20)
	for len(received) < total {
		switch n, err := v.Send(&c, server); err {
		case nil:
			v.Advance(n)
		default:
			require.Equal(t, ErrWouldBlock, err)
		}
		await(t, client, unix.POLLIN)
		n, err := Receive(&c, client, buffer)
		require.NoError(t, err)
		received = append(received, buffer[:n]...)
	}
	require.Greater(t, c.VectoredWrites, uint64(1))
	require.Equal(t, c.Writes, c.VectoredWrites)
	require.EqualValues(t, total, c.WrittenBytes)
	require.True(t, bytes.Equal(append([]byte("head"), body...), received))
}

func TestVectorErrors(t *testing.T) {
	a, b := pair(t)
	require.NoError(t, unix.Shutdown(b, unix.SHUT_RD))
	v := NewVector(1)
	v.Append([]byte("x"))
	_, err := v.Send(new(Counters), a)
	require.Equal(t, syscall.EPIPE, err)
}
