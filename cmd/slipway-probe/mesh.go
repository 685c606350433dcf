package main

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/slipway-platform/slipway/internal/health/mesh"
	"github.com/slipway-platform/slipway/internal/observe"
	"github.com/slipway-platform/slipway/internal/picture"
)

const meshUsage = `usage: slipway-probe mesh --kubeconfig FILE [--spec FILE | --name … --id … --address … --peer … ] [flags]
       slipway-probe mesh <SPEC

Waits until every agent sees every peer of the cluster's mesh as connected and ready, and prints what is missing. It changes nothing, and
does not wait for a peer that does not exist.

What is declared comes from --spec: the stack's output meshSpec, which holds no secret,
    pulumi stack output meshSpec --stack infra >mesh.json
or from --name, --id, --address and --peer. Without --kubeconfig the whole spec, credentials included, is read from standard input.

`

func runMesh(ctx context.Context, c call) error {
	spec := new(mesh.Spec)
	flags := newWaitFlags(c, &spec.Target)
	declared := newMeshFlags(flags)
	if err := flags.read(spec, func(string) error { return declared.declare(spec) }); err != nil {
		return err
	}
	kube, err := flags.kube(spec.Kubeconfig)
	if err != nil {
		return err
	}
	flags.output.declared = picture.Cluster{Mesh: spec}
	observed := observe.NewMesh(spec, kube)
	report, end := flags.wait(ctx, observed, observed.Confirm, map[string]string{
		"kubectl": toolFlags("--kubeconfig", flags.kubeconfig, kube.Context),
	})
	return flags.output.write(report, end, c)
}

// meshFlags are the flags that declare a mesh.
type meshFlags struct {
	*waitFlags
	spec, ca string
	strict   bool
	given    mesh.Spec
}

func newMeshFlags(flags *waitFlags) *meshFlags {
	m := &meshFlags{waitFlags: flags}
	flags.StringVar(&m.spec, "spec", "", "`file` with what is declared, as JSON: the stack's output meshSpec")
	flags.StringVar(&m.given.Name, "name", "", "Cilium's `name` of the cluster")
	flags.IntVar(&m.given.ID, "id", 0, "Cilium's `id` of the cluster")
	flags.StringVar(&m.given.Address, "address", "", "`address` of the cluster's own mesh API server")
	flags.Func("peer", "peer as `name,id,address[,nodes]`; once for each", m.addPeer)
	flags.StringVar(&m.ca, "ca", "", "`file` with the certificate of the mesh's CA; without it, no certificate is judged")
	flags.BoolVar(&m.strict, "strict", false, "an absent peer, and one with another number of nodes than declared, fails")
	flags.Usage = func() {
		fmt.Fprint(flags.Output(), meshUsage)
		flags.PrintDefaults()
	}
	return m
}

func (m *meshFlags) addPeer(text string) error {
	wrong := errors.New("is not name,id,address or name,id,address,nodes, as in apps,2,10.25.12.100,5")
	parts := strings.Split(text, ",")
	if len(parts) < 3 || len(parts) > 4 {
		return wrong
	}
	peer := mesh.Peer{Name: parts[0], Address: parts[2]}
	var err error
	if peer.ID, err = strconv.Atoi(parts[1]); err != nil {
		return wrong
	}
	if len(parts) == 4 {
		if peer.Nodes, err = strconv.Atoi(parts[3]); err != nil {
			return wrong
		}
	}
	m.given.Peers = append(m.given.Peers, peer)
	return nil
}

// declare sets what is declared.
func (m *meshFlags) declare(spec *mesh.Spec) (err error) {
	switch given := m.given; {
	case m.spec == "":
		given.Target = spec.Target
		*spec = given
		if m.ca != "" {
			if spec.CA, err = readFile("--ca", m.ca); err != nil {
				return err
			}
		}
	case given.Name != "" || given.ID != 0 || given.Address != "" || len(given.Peers) > 0 || m.ca != "":
		return usageError{errors.New("--spec: declares everything; leave out --name, --id, --address, --peer and --ca")}
	default:
		if err := decodeFile("--spec", m.spec, spec); err != nil {
			return err
		}
	}
	spec.Strict = spec.Strict || m.strict
	return nil
}
