package pool

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"slices"
	"strconv"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
)

const (
	// requiredVariable set to "required" makes these tests fail where there is no PostgreSQL, as in
	// .ci/run.
	requiredVariable = "QPS_LADDER_POSTGRES"
	// folderVariable is a folder that outlives the process: a lab runs many, one after another, and
	// making a cluster takes longer than what is measured.
	folderVariable = "LADDER_LAB_FOLDER"
)

// programs is the folder with initdb and postgres.
func programs(t testing.TB) string {
	if path, err := exec.LookPath("initdb"); err == nil {
		if path, err = filepath.EvalSymlinks(path); err == nil {
			return filepath.Dir(path)
		}
	}
	found, _ := filepath.Glob("/usr/lib/postgresql/*/bin/initdb") // where Debian puts them
	if len(found) > 0 {
		return filepath.Dir(slices.Max(found))
	}
	const missing = `there is no PostgreSQL: install it, as with "apt-get install postgresql"`
	if os.Getenv(requiredVariable) == "required" {
		t.Fatal(missing)
	}
	t.Skip(missing)
	return ""
}

// cluster starts a PostgreSQL of its own that listens on a socket in a folder, and returns how to
// connect to it. It ends with the test.
func cluster(t testing.TB) string {
	t.Helper()
	programs := programs(t)
	above := cmp.Or(os.Getenv(folderVariable), func() string {
		// Not the test's own folder: a socket's path has at most 107 bytes.
		folder, err := os.MkdirTemp("", "pg")
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { os.RemoveAll(folder) })
		return folder
	}())
	folder := filepath.Join(above, "data")
	attributes := &syscall.SysProcAttr{}
	if os.Getuid() == 0 { // which PostgreSQL refuses to be
		attributes.Credential = somebody(t)
	}
	run := func(name string, args ...string) *exec.Cmd {
		cmd := exec.Command(filepath.Join(programs, name), args...)
		cmd.Dir, cmd.SysProcAttr = above, attributes
		return cmd
	}
	if _, err := os.Stat(filepath.Join(folder, "PG_VERSION")); err != nil {
		if err := errors.Join(os.MkdirAll(folder, 0o700), os.Chmod(above, 0o711)); err != nil {
			t.Fatal(err)
		}
		if id := attributes.Credential; id != nil {
			if err := os.Chown(folder, int(id.Uid), int(id.Gid)); err != nil {
				t.Fatal(err)
			}
		}
		if text, err := run("initdb", "-D", folder, "-U", "ladder", "-A", "trust", "-E", "UTF8", "--locale=C", "--no-sync").CombinedOutput(); err != nil {
			t.Fatalf("initdb: %v: %s", err, text)
		}
	}
	server := run("postgres", "-D", folder, "-k", folder, "-c", "listen_addresses=", "-c", "fsync=off", "-c", "shared_buffers=16MB", "-c", "max_connections=30")
	if err := server.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- server.Wait() }()
	t.Cleanup(func() {
		server.Process.Signal(syscall.SIGINT) // disconnects everybody and ends
		<-ended
	})
	address := fmt.Sprintf("host=%s user=ladder dbname=postgres", folder)
	for late := time.Now().Add(time.Minute); ; {
		c, err := pgx.Connect(context.Background(), address)
		if err == nil {
			c.Close(context.Background())
			return address
		}
		select {
		case err := <-ended:
			ended <- err
			t.Fatalf("postgres ended: %v", err)
		case <-time.After(10 * time.Millisecond):
		}
		if time.Now().After(late) {
			t.Fatalf("postgres does not answer: %v", err)
		}
	}
}

// somebody is an account that is not root's: the one that the package makes, or nobody.
func somebody(t testing.TB) *syscall.Credential {
	for _, name := range []string{"postgres", "nobody"} {
		if u, err := user.Lookup(name); err == nil {
			uid, errU := strconv.ParseUint(u.Uid, 10, 32)
			gid, errG := strconv.ParseUint(u.Gid, 10, 32)
			if errU == nil && errG == nil {
				return &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}
			}
		}
	}
	t.Fatal("PostgreSQL does not run as root, and there is no other account here")
	return nil
}
