package app

import (
	"container/list"
	"errors"
	"io"
	"io/fs"
	"os"
	"sync"
	"syscall"
	"time"
)

const (
	// leastHeld is what a held file counts for at least: its name and its entry take memory too.
	leastHeld = 512

	// clockTick is more than the kernel's clock for files moves at a time (4 to 10 ms).
	clockTick = 100 * time.Millisecond
)

var errChanged = errors.New("app: the file has changed while it was read")

// fileMemory holds files that were read, so that each is read once and sent by every loop from the
// same bytes. Its methods may be called from any number of goroutines at a time.
//
// The total bounds what is held here. Files that were pushed out while they are being read or sent
// live on until their last answer is gone: then the garbage collector has them.
type fileMemory struct {
	most int64 // bytes held at a time
	open func(name string, flag int, perm fs.FileMode) (*os.File, error)

	mutex sync.Mutex
	files map[string]*list.Element // by name
	order list.List                // of *heldFile, the one that was used last in front
	held  int64                    // bytes, by heldFile.cost
}

// heldFile is a file that is held, or about to be read.
type heldFile struct {
	name  string
	info  fs.FileInfo // of the file whose bytes these are
	until time.Time   // when it has to be read again; zero: never
	once  sync.Once   // reads it
	body  []byte      // never written to once it has been read
	err   error       // why there is no body
}

func newFileMemory(most int64, open func(string, int, fs.FileMode) (*os.File, error)) *fileMemory {
	return &fileMemory{most: most, open: open, files: make(map[string]*list.Element)}
}

// read returns the bytes of the file with this name, which has no links in it, as info describes
// it; nobody writes to them. Whoever asks for a file that another loop is reading waits for that.
// ok is false if the file has changed since, or cannot be read.
func (m *fileMemory) read(name string, info fs.FileInfo) (body []byte, ok bool) {
	f := m.find(name, info)
	f.once.Do(func() {
		f.err = errChanged // also if there is no room for it, which panics
		f.body, f.err = m.load(name, info)
	})
	if f.err != nil {
		m.mutex.Lock()
		if e := m.files[name]; e != nil && e.Value == f {
			m.drop(e)
		}
		m.mutex.Unlock()
		return nil, false
	}
	return f.body, true
}

// find returns the file if it is held and still the same; else a new one, to be read.
func (m *fileMemory) find(name string, info fs.FileInfo) *heldFile {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	now := time.Now()
	if e := m.files[name]; e != nil {
		f := e.Value.(*heldFile)
		if sameFile(f.info, info) && (f.until.IsZero() || now.Before(f.until)) {
			m.order.MoveToFront(e)
			return f
		}
		m.drop(e)
	}
	f := &heldFile{name: name, info: info}
	// Within one tick of its clock a file can change twice and look the same: what was read so soon
	// after a change is read once more.
	if now.Sub(info.ModTime()).Abs() < clockTick {
		f.until = now.Add(clockTick)
	}
	m.files[name] = m.order.PushFront(f)
	for m.held += f.cost(); m.held > m.most; {
		m.drop(m.order.Back())
	}
	return f
}

// drop gives up a file. The mutex is held.
func (m *fileMemory) drop(e *list.Element) {
	f := m.order.Remove(e).(*heldFile)
	delete(m.files, f.name)
	m.held -= f.cost()
}

func (f *heldFile) cost() int64 { return max(f.info.Size(), leastHeld) }

// load reads the file, if it is the one that info describes before and after.
func (m *fileMemory) load(name string, info fs.FileInfo) ([]byte, error) {
	// O_NONBLOCK: a named pipe that has taken the file's place would hold up the loop until someone
	// writes.
	file, err := m.open(name, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	if err := unchanged(file, info); err != nil {
		return nil, err
	}
	body := make([]byte, info.Size())
	if _, err := io.ReadFull(file, body); err != nil {
		return nil, err
	}
	return body, unchanged(file, info)
}

// unchanged is nil if the open file is still what info describes.
func unchanged(file *os.File, info fs.FileInfo) error {
	now, err := file.Stat()
	if err == nil && !sameFile(info, now) {
		err = errChanged
	}
	return err
}

// sameFile says whether two looks have seen the same plain file, and no change in between.
func sameFile(a, b fs.FileInfo) bool {
	return os.SameFile(a, b) && b.Mode().IsRegular() && a.Size() == b.Size() && a.ModTime().Equal(b.ModTime())
}
