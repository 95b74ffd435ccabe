//go:build !linux

package grade

import (
	"os/exec"

	"github.com/qps-ladder/qps-ladder/bench/workshop/internal/witness"
)

func startChild(*exec.Cmd) (process, error) { return nil, witness.ErrUnsupported }

func (s *Server) pause() error  { return witness.ErrUnsupported }
func (s *Server) resume() error { return witness.ErrUnsupported }
