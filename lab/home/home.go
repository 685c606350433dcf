// Package home manages the folder of one lab, with its state, logs, secrets and lock. It is outside the checkout, which
// the lab never writes to.
package home

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/google/uuid"
	"golang.org/x/sys/unix"
)

// Home is the folder of one lab.
type Home struct {
	Dir string
}

// Settings are what a lab was created with. They do not change.
type Settings struct {
	Checkout string    `json:"checkout"` // project that the lab was started from
	Created  time.Time `json:"created"`
	Secrets  Secrets   `json:"secrets"`
	Talos    string    `json:"talos,omitempty"` // built Talos that the VMs boot in QEMU: name of a tool, or folder; "": simulated nodes
}

// SourceUser is the user of the lab's registry, AccessKey the access key of its bucket with the tree, SnapshotKey the write-only key of its
// buckets for snapshots of etcd, and SnapshotReaderKey the key that may also read them. The password and the secret keys are
// Secrets.GitPassword. An access key is a secret of the stack, so Pulumi masks it wherever it is in the output: it is no common word.
const (
	SourceUser        = "flux"
	AccessKey         = "LABACCESSKEYOFBUCKET"
	SnapshotKey       = "LABACCESSKEYOFSNAPSHOTS"
	SnapshotReaderKey = "LABACCESSKEYOFUP"
)

// Secrets are the secrets of one lab. Each lab has new ones.
type Secrets struct {
	ProxmoxToken string `json:"proxmoxToken"` // USER@REALM!ID=UUID, for PROXMOX_VE_API_TOKEN
	GitPassword  string `json:"gitPassword"`
	Passphrase   string `json:"passphrase"` // of Pulumi's secrets provider
}

// State is the default folder of all labs of this user.
func State() (string, error) {
	if dir := os.Getenv("XDG_STATE_HOME"); dir != "" {
		return filepath.Join(dir, "slipway", "labs"), nil
	}
	user, err := os.UserHomeDir()
	if err != nil {
		return "", fmt.Errorf("lab folder: %w; set XDG_STATE_HOME", err)
	}
	return filepath.Join(user, ".local", "state", "slipway", "labs"), nil
}

// NameOf is the name of a checkout's own lab: the folder's name, and a part of its path's checksum.
func NameOf(checkout string) string {
	sum := sha256.Sum256([]byte(checkout))
	return filepath.Base(checkout) + "-" + hex.EncodeToString(sum[:3])
}

// Open returns the home in dir. It creates it for checkout, with new secrets and with talos as Settings.Talos, if it does not exist.
func Open(dir, checkout, talos string) (*Home, Settings, error) {
	h := &Home{Dir: dir}
	s, err := h.Settings()
	if err == nil || !errors.Is(err, os.ErrNotExist) {
		return h, s, err
	}
	for _, sub := range []string{h.Logs(), h.Bin(), h.Project(), h.Copied(), h.Backend(), h.Plugins(), h.Clusters()} {
		if err := os.MkdirAll(sub, 0o700); err != nil {
			return nil, Settings{}, fmt.Errorf("lab folder: %w", err)
		}
	}
	s = Settings{Checkout: checkout, Talos: talos, Created: time.Now().UTC(), Secrets: Secrets{
		ProxmoxToken: "slipway@pve!pulumi=" + uuid.NewString(),
		GitPassword:  rand.Text(),
		Passphrase:   rand.Text(),
	}}
	data, err := json.Marshal(s)
	if err != nil {
		return nil, Settings{}, err
	}
	return h, s, os.WriteFile(h.settings(), data, 0o600)
}

// Settings reads the settings; os.ErrNotExist if there is no lab in the folder.
func (h *Home) Settings() (Settings, error) {
	var s Settings
	data, err := os.ReadFile(h.settings())
	if err != nil {
		return s, fmt.Errorf("lab folder: %w", err)
	}
	if err := json.Unmarshal(data, &s); err != nil {
		return s, fmt.Errorf("lab folder: %s: %w", h.settings(), err)
	}
	return s, nil
}

// Lock marks the lab as running until the calling process ends. It fails if the lab is running already. The caller must
// keep the file open.
func (h *Home) Lock() (*os.File, error) {
	f, err := os.OpenFile(h.lock(), os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, fmt.Errorf("lab folder: %w", err)
	}
	if err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		return nil, errors.Join(fmt.Errorf("lab %s: already running; use it, or end it with `make lab-clean`", h.Name()), f.Close())
	}
	return f, nil
}

// Exclusive waits until no other command changes the lab's files, and excludes others until release is called.
func (h *Home) Exclusive() (release func(), err error) {
	f, err := os.OpenFile(filepath.Join(h.Dir, "changing"), os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, fmt.Errorf("lab folder: %w", err)
	}
	if err := unix.Flock(int(f.Fd()), unix.LOCK_EX); err != nil {
		return nil, errors.Join(fmt.Errorf("lab folder: %w", err), f.Close())
	}
	return func() { _ = f.Close() }, nil
}

// Running tells whether a process holds the lock.
func (h *Home) Running() (bool, error) {
	f, err := os.OpenFile(h.lock(), os.O_RDWR, 0o600)
	if errors.Is(err, os.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("lab folder: %w", err)
	}
	defer f.Close()
	err = unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB)
	return errors.Is(err, unix.EWOULDBLOCK), nil
}

// SetPID records pid 1 of the lab's namespaces, with its number outside of them.
func (h *Home) SetPID(pid int) error {
	return os.WriteFile(h.pid(), fmt.Appendf(nil, "%d\n", pid), 0o600)
}

// PID returns the process that SetPID recorded, or an error if the lab is not running.
func (h *Home) PID() (int, error) {
	running, err := h.Running()
	if err != nil {
		return 0, err
	}
	if !running {
		return 0, fmt.Errorf("lab %s: not running; start it with `make lab-shell`", h.Name())
	}
	data, err := os.ReadFile(h.pid())
	if err != nil {
		return 0, fmt.Errorf("lab folder: %w", err)
	}
	var pid int
	if _, err := fmt.Sscan(string(data), &pid); err != nil {
		return 0, fmt.Errorf("lab folder: %s: %w", h.pid(), err)
	}
	return pid, nil
}

// Remove deletes the folder of a lab that is not running.
func (h *Home) Remove() error {
	running, err := h.Running()
	if err != nil {
		return err
	}
	if running {
		return fmt.Errorf("lab %s: still running; nothing removed", h.Name())
	}
	return os.RemoveAll(h.Dir)
}
