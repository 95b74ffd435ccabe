package workshop

import (
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/qps-ladder/qps-ladder/bench/workshop/internal/grade"
)

// Play runs one check of an exercise alone and shows what its clients send and get. number counts from 1.
func (w *Workshop) Play(ctx context.Context, which string, number int, seed uint64) error {
	e, err := exercise(w.root, which)
	if err != nil {
		return err
	}
	if number < 1 || number > len(e.Checks) {
		return fmt.Errorf("exercise %d has cases 1 to %d", e.Number, len(e.Checks))
	}
	own, err := e.laidOut(w.root)
	if err != nil {
		return err
	}
	if err := cleanEnvironment(ctx); err != nil {
		return err
	}
	start, err := e.start(w.root)
	if err != nil {
		return err
	}
	temporary, err := os.MkdirTemp("", "ladder-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(temporary)
	o := w.out
	o.working("building")
	binary, err := own.buildIn(ctx, w.root, temporary, e.Name)
	if err != nil {
		o.wipe()
		return err
	}
	subject := e.subject(ctx, w.root, temporary, e.Name, binary, own, start)
	subject.Seed = seed
	c := e.Checks[number-1]
	o.say("%s", o.paint(bold, fmt.Sprintf("Exercise %d, case %d: %s", e.Number, number, c.Name())))
	o.say("> is what a client sends, < what it gets, behind the number of its connection.")
	stop := grade.Show(o.Writer, c)
	findings := subject.Run(c)
	stop()
	failed := false
	for _, f := range findings {
		mark, colour := "ok", green
		if !f.Holds {
			mark, colour, failed = "no", red, true
		}
		o.line(mark, colour, f.Text)
	}
	if failed {
		return errors.New("it does not hold yet")
	}
	return nil
}
