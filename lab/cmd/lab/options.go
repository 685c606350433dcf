package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"

	"github.com/slipway-platform/slipway/lab/home"
	"github.com/slipway-platform/slipway/lab/namespace"
)

// options are the flags of all commands.
type options struct {
	name    string
	project string
	latency float64
	talos   string
}

// checkout returns the folder of the project.
func (o *options) checkout() (string, error) {
	if o.project != "" {
		return filepath.Abs(o.project)
	}
	dir, err := os.Getwd()
	if err != nil {
		return "", err
	}
	for at := dir; ; at = filepath.Dir(at) {
		if _, err := os.Stat(filepath.Join(at, "Pulumi.yaml")); err == nil {
			return at, nil
		}
		if at == filepath.Dir(at) {
			return "", fmt.Errorf("no Pulumi.yaml in %s or above; run it in the project, or give --project", dir)
		}
	}
}

// home returns the folder of the named lab, which need not exist. Without a name it is the lab of the checkout.
func (o *options) home() (*home.Home, error) {
	state, err := home.State()
	if err != nil {
		return nil, err
	}
	if o.name == "" {
		checkout, err := o.checkout()
		if err != nil {
			return nil, err
		}
		return &home.Home{Dir: filepath.Join(state, home.NameOf(checkout))}, nil
	}
	if o.name != filepath.Base(o.name) || o.name == "." || o.name == ".." {
		return nil, fmt.Errorf("--name: %q is no name; give a single word", o.name)
	}
	return &home.Home{Dir: filepath.Join(state, o.name)}, nil
}

// existing returns the folder of the named lab, or an error if it does not exist.
func (o *options) existing() (*home.Home, error) {
	h, err := o.home()
	if err != nil {
		return nil, err
	}
	if _, err := h.Settings(); errors.Is(err, os.ErrNotExist) {
		return nil, fmt.Errorf("there is no lab %q; start it with `make lab-shell`", h.Name())
	} else if err != nil {
		return nil, err
	}
	return h, nil
}

// check returns an error if no lab can run on this machine.
func (o *options) check() error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	return namespace.Check(self, probeName)
}

// daemon is the command line of the lab inside its namespaces.
func (o *options) daemon() ([]string, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	return []string{self, initName, self, daemonName, "--latency", strconv.FormatFloat(o.latency, 'g', -1, 64)}, nil
}
