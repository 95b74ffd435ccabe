package profile

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/qps-ladder/qps-ladder/shared/harness"
)

// tool is perf or strace, run beside a server on CPUs of its own.
type tool struct {
	cpus    []int
	process *harness.Process
	orders  *os.File // to perf, and its answers: see perf-record(1) and perf-stat(1), --control
	answers *os.File
}

// startPerf starts a subcommand of perf on a server, and returns once it counts.
func (t *tool) startPerf(ctx context.Context, s *session, subcommand string, flags ...string) error {
	orderReader, orders, err := os.Pipe()
	if err != nil {
		return err
	}
	answers, answerWriter, err := os.Pipe()
	if err != nil {
		orderReader.Close()
		orders.Close()
		return err
	}
	t.orders, t.answers = orders, answers
	args := append([]string{subcommand}, flags...)
	t.process, err = harness.Start(ctx, harness.Command{
		Name: "perf " + subcommand, Path: "perf", CPUs: t.cpus, Files: []*os.File{orderReader, answerWriter},
		Args: append(args, "-D", "-1", "--control", "fd:3,4", "-p", strconv.Itoa(s.PID())),
	})
	if err != nil {
		return err
	}
	if err := t.order("enable"); err != nil {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		t.process.Close()
		return perfRefused(t.process.Stderr(), err)
	}
	return nil
}

// order fails when perf has ended instead.
func (t *tool) order(word string) error {
	if _, err := t.orders.WriteString(word + "\n"); err != nil {
		return err
	}
	if err := t.answers.SetReadDeadline(time.Now().Add(harness.Patience)); err != nil {
		return err
	}
	answer := make([]byte, 16)
	n, err := t.answers.Read(answer)
	if err == nil && !bytes.HasPrefix(answer[:n], []byte("ack")) {
		err = fmt.Errorf("perf answered %q", answer[:n])
	}
	return err
}

// startStrace starts strace on a server, and returns once every thread is traced.
func (t *tool) startStrace(ctx context.Context, s *session, flags ...string) (err error) {
	t.process, err = harness.Start(ctx, harness.Command{Path: "strace", CPUs: t.cpus, Args: append(flags, "-p", strconv.Itoa(s.PID()))})
	if err != nil {
		return err
	}
	if err = t.process.AwaitStderr(ctx, "attached", harness.Patience); err != nil && strings.Contains(t.process.Stderr(), "not permitted") {
		err = fmt.Errorf("strace may not attach here: run as root, or sudo sysctl kernel.yama.ptrace_scope=0")
	}
	return err
}

// stop has it end and write what it has.
func (t *tool) stop() error {
	// One that has ended by itself has lost its server, or was killed.
	if !t.process.Alive() {
		return t.process.EndedError("")
	}
	return t.process.Stop(os.Interrupt, harness.Patience)
}

// abandon is a recorder's.
func (t *tool) abandon() {
	if t.process != nil {
		t.process.Close()
	}
	if t.orders != nil {
		t.orders.Close()
		t.answers.Close()
	}
	t.process, t.orders, t.answers = nil, nil, nil
}
