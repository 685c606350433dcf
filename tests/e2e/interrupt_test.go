//go:build e2e || matrix

package e2e

import (
	"os"
	"os/signal"
	"sync"
	"syscall"
	"testing"
)

// running are the labs of this process that have not ended. A signal ends a test process without its clean-up functions, and a lab
// outlives the command that started it.
var running struct {
	sync.Mutex
	labs map[*lab]bool
}

func TestMain(m *testing.M) {
	running.labs = map[*lab]bool{}
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, syscall.SIGINT, syscall.SIGTERM)
	go func() {
		<-signals
		running.Lock() // for good: no other lab starts
		for l := range running.labs {
			if out, err := l.run("clean"); err != nil {
				os.Stderr.WriteString(out)
			}
		}
		os.Exit(130)
	}()
	os.Exit(m.Run())
}

// starts notes that a lab is about to run, and ends that it is gone.
func (l *lab) starts() {
	running.Lock()
	defer running.Unlock()
	running.labs[l] = true
}

func (l *lab) ends() {
	running.Lock()
	defer running.Unlock()
	delete(running.labs, l)
}
