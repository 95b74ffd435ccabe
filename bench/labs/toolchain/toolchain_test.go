package toolchain

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/qps-ladder/qps-ladder/bench/lab/input"
)

// head is a browser's, for a route that there is.
var head = bytes.Replace(input.Browser, []byte("/products/catalogue/index.html"), []byte("/api/status"), 1)

func shop() *Shop {
	var products []Product
	for i, a := range strings.Fields("Blue Copper Garden Little Northern Paper Round Summer Velvet Wooden") {
		for k, b := range strings.Fields("Basket Candle Drawer Lantern Mirror Notebook Pillow Ribbon Saddle Teapot") {
			for n := range 10 {
				products = append(products, NewProduct(fmt.Sprintf("%s %s %d", a, b, 100*n+n), (i+1)*(k+3)*(n+7)*37%5000))
			}
		}
	}
	return NewShop(products)
}

// The ways are binaries: each runs this, and so gives what is written here.
func TestSame(t *testing.T) {
	codec := NewCodec()
	for range 2 { // the second has what the first has left
		answer, err := http.ReadResponse(bufio.NewReader(bytes.NewReader(codec.Answer(head))), nil)
		require.NoError(t, err)
		require.Equal(t, 200, answer.StatusCode)
		require.EqualValues(t, len(`{"status":"ok"}`), answer.ContentLength)
		require.True(t, bytes.HasSuffix(codec.Answer(head), []byte("\r\n\r\n"+`{"status":"ok"}`)))
	}
	require.Nil(t, codec.Answer(head[:len(head)-1]))

	s := shop()
	require.Equal(t, `[{"name":"Paper Lantern 0","points":141}`, string(s.Suggest("paper lant"))[:40])
	for typed, first := range map[string]string{"paper lant": "Paper Lantern", "teapot round": "Round Teapot", "WOODEN mirr": "Wooden Mirror"} {
		var got []struct {
			Name   string
			Points int
		}
		require.NoError(t, json.Unmarshal(s.Suggest(typed), &got))
		require.Len(t, got, 10)
		for i := range got {
			require.Contains(t, got[i].Name, first)
			require.GreaterOrEqual(t, got[max(0, i-1)].Points, got[i].Points)
		}
	}
	require.Equal(t, "[]", string(s.Suggest("")))
}

// size reports how large a program is.
func size(b *testing.B, program string) {
	info, err := os.Stat(program)
	require.NoError(b, err)
	b.ReportMetric(float64(info.Size())/1e6, "MB")
}

// BenchmarkToolchain has one function for all ways of a case; lab.yaml says how each binary is
// built. MB is the size of the one that runs.
func BenchmarkToolchain(b *testing.B) {
	self, err := os.Executable()
	require.NoError(b, err)
	for _, way := range strings.Fields("usual own-profile wrong-profile amd64-v3 no-inlining no-symbols") {
		b.Run("request/"+way, func(b *testing.B) {
			codec := NewCodec()
			for b.Loop() {
				if codec.Answer(head) == nil {
					b.Fatal("no answer")
				}
			}
			size(b, self)
		})
		b.Run("handler/"+way, func(b *testing.B) {
			s := shop()
			for b.Loop() {
				if len(s.Suggest("paper lant")) < 10 {
					b.Fatal("nothing found")
				}
			}
			size(b, self)
		})
	}
	b.Run("build/sockets", func(b *testing.B) { build(b, "sockets", sockets) })
	b.Run("build/net-http", func(b *testing.B) { build(b, "net-http", netHTTP) })
}

const (
	sockets = `package main

import (
	"bufio"
	"log"
	"net"
)

const version = %d

func main() {
	listener, err := net.Listen("tcp", "127.0.0.1:8080")
	if err != nil {
		log.Fatal(version, err)
	}
	for {
		c, err := listener.Accept()
		if err != nil {
			log.Fatal(err)
		}
		go func() {
			defer c.Close()
			for in := bufio.NewReader(c); ; {
				for line := "-"; line != "\r\n"; {
					if line, err = in.ReadString('\n'); err != nil {
						return
					}
				}
				c.Write([]byte("HTTP/1.1 200 OK\r\nContent-Length: 13\r\n\r\nHello, World!"))
			}
		}()
	}
}
`
	netHTTP = `package main

import (
	"io"
	"log"
	"net/http"
)

const version = %d

func main() {
	log.Fatal(version, http.ListenAndServe("127.0.0.1:8080", http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		io.WriteString(w, "Hello, World!")
	})))
}
`
)

// build times go build of a program after a change. What it imports is compiled before, as it is on
// the machine of somebody who works on it.
func build(b *testing.B, name, code string) {
	folder := os.Getenv("LADDER_LAB_FOLDER") // lasts for all rounds
	if folder == "" {
		folder = b.TempDir()
	}
	folder = filepath.Join(folder, name)
	require.NoError(b, os.MkdirAll(folder, 0o755))
	require.NoError(b, os.WriteFile(filepath.Join(folder, "go.mod"), []byte("module little\n\ngo 1.26\n"), 0o644))
	program := filepath.Join(folder, "little")
	compile := func() {
		require.NoError(b, os.WriteFile(filepath.Join(folder, "main.go"), fmt.Appendf(nil, code, time.Now().UnixNano()), 0o644))
		cmd := exec.Command("go", "build", "-o", program)
		cmd.Dir, cmd.Env = folder, append(os.Environ(), "CGO_ENABLED=0", "GOFLAGS=", "GOWORK=off")
		text, err := cmd.CombinedOutput()
		require.NoError(b, err, "%s", text)
	}
	if _, err := os.Stat(program); err != nil {
		compile()
	}
	for b.Loop() {
		compile()
	}
	size(b, program)
}
