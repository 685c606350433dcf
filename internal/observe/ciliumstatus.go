package observe

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/netip"
	"regexp"

	"github.com/slipway-platform/slipway/cluster"
	"github.com/slipway-platform/slipway/cluster/secrecy"
	"github.com/slipway-platform/slipway/internal/health/gate"
)

// agentStatus is the part of Cilium's StatusResponse that the checks read.
type agentStatus struct {
	Cilium     *component `json:"cilium"`
	Kubernetes *component `json:"kubernetes"`
	Kvstore    *component `json:"kvstore"`
	Runtime    *component `json:"container-runtime"`
	CNIFile    *component `json:"cni-file"`
	IPAM       struct {
		Status string `json:"status"`
	} `json:"ipam"`
	Mesh struct {
		Clusters []remoteCluster `json:"clusters"`
	} `json:"cluster-mesh"`
	Controllers []controllerStatus `json:"controllers"`
}

type component struct {
	State string `json:"state"` // Ok, Warning, Failure or Disabled
	Msg   string `json:"msg"`
}

func (k *Kube) agentStatus(ctx context.Context, namespace, pod string) (agentStatus, error) {
	out, err := k.exec(ctx, namespace, pod, cluster.CiliumAgentContainer, "cilium-dbg", "status", "-o", "json")
	if err != nil {
		return agentStatus{}, err
	}
	return parseAgentStatus(out)
}

func parseAgentStatus(report []byte) (status agentStatus, err error) {
	if err := json.Unmarshal(report, &status); err != nil {
		return status, fmt.Errorf("the agent's status is not the expected JSON: %w", err)
	}
	if status.Cilium == nil {
		return status, errors.New("the agent's status lacks the state of Cilium")
	}
	return status, nil
}

func (k *Kube) ciliumStatus(ctx context.Context, namespace, pod string) gate.CiliumStatus {
	status, err := k.agentStatus(ctx, namespace, pod)
	if err != nil {
		return gate.CiliumStatus{Asked: true, Err: secrecy.Line(err.Error())}
	}
	return status.judged()
}

// pool matches a range in the agent's IPAM status: "IPv4: 4/254 allocated from 10.244.1.0/24, ".
var pool = regexp.MustCompile(`allocated from ([0-9a-fA-F.:]+/[0-9]+)`)

// judged returns what the gate judges.
func (status agentStatus) judged() gate.CiliumStatus {
	seen := gate.CiliumStatus{Asked: true}
	for _, c := range []struct {
		name string
		*component
	}{{"Cilium", status.Cilium}, {"its Kubernetes client", status.Kubernetes}, {"its key-value store", status.Kvstore},
		{"its container runtime", status.Runtime}, {"its CNI file", status.CNIFile}} {
		if c.component == nil {
			continue
		}
		switch c.State {
		case "Failure":
			seen.Problems = append(seen.Problems, fmt.Sprintf("%s reports a failure: %s", c.name, secrecy.Line(c.Msg)))
		case "Warning":
			seen.Remarks = append(seen.Remarks, fmt.Sprintf("%s warns: %s", c.name, secrecy.Line(c.Msg)))
		}
	}
	for _, controller := range status.Controllers {
		if controller.Status.Failures > 0 {
			seen.Remarks = append(seen.Remarks, fmt.Sprintf("controller %s has failed %d times in a row: %s",
				controller.Name, controller.Status.Failures, secrecy.Line(controller.Status.Message)))
		}
	}
	for _, match := range pool.FindAllStringSubmatch(status.IPAM.Status, -1) {
		cidr, err := netip.ParsePrefix(match[1])
		if err != nil {
			seen.Err = err.Error()
			continue
		}
		seen.Pools = append(seen.Pools, cidr.Masked())
	}
	return seen
}
