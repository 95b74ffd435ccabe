package peers

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"net"
	"net/http"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// Every server answers what the workloads ask for, with the right bytes, alone and pipelined.
func TestEveryPeerServes(t *testing.T) {
	for _, name := range []string{"nethttp", "fasthttp", "gnet", "nbio"} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), name)
			if text, err := exec.Command("go", "build", "-o", path, "./"+name).CombinedOutput(); err != nil {
				t.Fatalf("%v: %s", err, text)
			}
			cmd := exec.Command(path, "-addr", "127.0.0.1:0", "-workers", "2")
			out, err := cmd.StdoutPipe()
			if err != nil {
				t.Fatal(err)
			}
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			defer func() {
				cmd.Process.Signal(syscall.SIGTERM)
				if err := cmd.Wait(); err != nil {
					t.Error(err)
				}
			}()
			line, _ := bufio.NewReader(out).ReadString('\n')
			_, address, _ := strings.Cut(line, "addr=")
			address, _, _ = strings.Cut(address, " ")
			c, err := net.Dial("tcp", address)
			if err != nil {
				t.Fatalf("%v after %q", err, line)
			}
			defer c.Close()
			answers := bufio.NewReader(c)
			long := strings.Repeat("X-Field: value\r\n", 20)
			expect := func(request, want string) {
				t.Helper()
				for range 2 { // at once
					if _, err := io.WriteString(c, request); err != nil {
						t.Fatal(err)
					}
				}
				for range 2 {
					r, err := http.ReadResponse(answers, nil)
					if err != nil {
						t.Fatal(err)
					}
					body, err := io.ReadAll(r.Body)
					if err != nil || r.StatusCode != 200 || string(body) != want || r.Header.Get("Server") != "qps-ladder" || r.Header.Get("Date") == "" {
						t.Fatalf("%q: %v, status %d, %v, body %.50q", request, err, r.StatusCode, r.Header, body)
					}
				}
			}
			get := func(path, more string) string { return "GET " + path + " HTTP/1.1\r\nHost: h\r\n" + more + "\r\n" }
			expect(get("/", long), "Hello, World!")
			expect(get("/", ""), "Hello, World!")
			expect(get("/api/status", ""), `{"status":"ok"}`)
			expect(get("/users/42", ""), `{"id":"42"}`)
			expect(get("/middleware/10", ""), "Hello, World!")
			body := strings.Repeat("echo", 256)
			expect(fmt.Sprintf("POST /api/echo HTTP/1.1\r\nHost: h\r\nContent-Length: %d\r\n\r\n%s", len(body), body), body)
			pattern := bytes.Repeat([]byte("0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxy"), 2000)
			expect(get("/bytes/65536", ""), string(pattern[:65536]))

			// A connection that is to be closed is.
			if _, err := io.WriteString(c, get("/", "Connection: close\r\n")); err != nil {
				t.Fatal(err)
			}
			rest, err := io.ReadAll(answers)
			if err != nil || !bytes.HasSuffix(rest, []byte("Hello, World!")) {
				t.Fatalf("%v: %q", err, rest)
			}
		})
	}
}
