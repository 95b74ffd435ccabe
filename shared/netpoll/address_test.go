package netpoll

import (
	"fmt"
	"io"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestParseAddress(t *testing.T) {
	for text, want := range map[string]string{
		"127.0.0.1:8080":          "127.0.0.1:8080",
		"127.0.0.2:0":             "127.0.0.2:0",
		"0.0.0.0:65535":           "0.0.0.0:65535",
		"[::1]:1":                 "[::1]:1",
		"[::]:8080":               "[::]:8080",
		":8080":                   "[::]:8080",
		"[::ffff:127.0.0.1]:8080": "127.0.0.1:8080",
		"[fe80::1%7]:80":          "[fe80::1%7]:80",
		"localhost:80":            "127.0.0.1:80",
	} {
		a, err := ParseAddress(text)
		require.NoError(t, err, text)
		require.True(t, a.Valid(), text)
		require.Equal(t, want, a.String(), text)
		require.True(t, strings.HasSuffix(want, fmt.Sprint(":", a.Port())), text)
	}
	require.False(t, Address{}.Valid())
	require.Empty(t, Address{}.String())
}

func TestParseAddressErrorsAreOneClearLine(t *testing.T) {
	for text, want := range map[string]string{
		"":                      `bad address "": write host:port`,
		"8080":                  `bad address "8080": write host:port`,
		"localhost":             `write host:port`,
		"::1:80":                `write host:port`,
		"[::1]":                 `write host:port`,
		"127.0.0.1:":            `the port must be a number from 0 to 65535`,
		"127.0.0.1:http":        `the port must be a number from 0 to 65535`,
		"127.0.0.1:65536":       `the port must be a number from 0 to 65535`,
		"127.0.0.1:-1":          `the port must be a number from 0 to 65535`,
		"[fe80::1%nosuch]:80":   `unknown network interface "nosuch"`,
		"no-such-host.invalid:": `the port must be a number`,
	} {
		a, err := ParseAddress(text)
		require.ErrorContains(t, err, want, text)
		require.NotContains(t, err.Error(), "\n")
		require.False(t, a.Valid())
	}
	// Without a network the name server cannot be asked: either answer names the host.
	_, err := ParseAddress("no-such-host.invalid:80")
	require.ErrorContains(t, err, `host "no-such-host.invalid"`)
	require.NotContains(t, err.Error(), "\n")
}

func TestIsExhausted(t *testing.T) {
	for _, errno := range []syscall.Errno{syscall.EMFILE, syscall.ENFILE, syscall.ENOBUFS, syscall.ENOMEM} {
		require.True(t, IsExhausted(errno), errno)
		require.True(t, IsExhausted(fmt.Errorf("accept: %w", errno)), errno)
	}
	for _, err := range []error{nil, ErrWouldBlock, io.EOF, syscall.EBADF, ErrUnsupported} {
		require.False(t, IsExhausted(err), err)
	}
}

func TestAddressInUseError(t *testing.T) {
	err := error(&AddressInUseError{Address: "127.0.0.1:8080"})
	require.EqualError(t, err, "address 127.0.0.1:8080 is taken by another process: stop it or choose another with -addr")
	require.ErrorIs(t, err, syscall.EADDRINUSE)
}
