package talos

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/siderolabs/talos/pkg/machinery/api/common"
	"github.com/siderolabs/talos/pkg/machinery/api/machine"
	"github.com/siderolabs/talos/pkg/machinery/config"
	"github.com/siderolabs/talos/pkg/machinery/constants"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// container is the container of a static pod. Those of other pods are not modelled.
type container struct {
	pod, name string // e.g. kube-system/kube-apiserver-cp-1 and kube-apiserver
	id        string
	image     string
	state     string // in CRI's words
	cfg       config.Provider
}

// display is the container's id in Talos's API.
func (c container) display() string { return c.pod + ":" + c.name + ":" + c.id[:12] }

// containers are the containers of the static pods that run on this node, or whose program does not start.
func (b *boot) containers() []container {
	b.site.mu.Lock()
	defer b.site.mu.Unlock()
	var all []container
	for _, name := range slices.Sorted(maps.Keys(b.static)) {
		pod := b.static[name]
		if !pod.Enabled || !pod.made {
			continue
		}
		sum := sha256.Sum256([]byte(name + pod.spec + b.id))
		one := container{
			pod: "kube-system/" + name + "-" + b.hostname, name: name, id: hex.EncodeToString(sum[:]), image: pod.Image,
			state: "CONTAINER_EXITED", cfg: pod.cfg,
		}
		if pod.up {
			one.state = "CONTAINER_RUNNING"
		}
		all = append(all, one)
	}
	return all
}

// checkInspector refuses a namespace or a driver as Talos does, and those that the lab does not have.
func checkInspector(namespace string, driver common.ContainerDriver) error {
	switch {
	case driver == common.ContainerDriver_CRI && namespace != constants.K8sContainerdNamespace:
		return status.Error(codes.Unknown, "CRI inspector is supported only for K8s namespace")
	case driver != common.ContainerDriver_CRI:
		return status.Error(codes.Unimplemented, "containers of containerd are not modelled by the lab's simulated Talos nodes; use CRI")
	}
	return nil
}

// Containers lists the containers of the static pods, and their sandboxes.
func (s *machinedServer) Containers(_ context.Context, in *machine.ContainersRequest) (*machine.ContainersResponse, error) {
	if err := checkInspector(in.Namespace, in.Driver); err != nil {
		return nil, err
	}
	var infos []*machine.ContainerInfo
	for _, c := range s.b.containers() {
		infos = append(infos,
			&machine.ContainerInfo{Namespace: in.Namespace, Id: c.pod, PodId: c.pod, Name: c.pod, Status: "SANDBOX_READY"},
			&machine.ContainerInfo{
				Namespace: in.Namespace, Id: c.display(), InternalId: c.id, PodId: c.pod, Name: c.name, Image: c.image, Status: c.state,
			})
	}
	return &machine.ContainersResponse{Messages: []*machine.Container{{Containers: infos}}}, nil
}

// containerLog sends the last lines of the log of a static pod's container, in the form of CRI. The time of each line is that of the call.
func (s *machinedServer) containerLog(in *machine.LogsRequest, out machine.MachineService_LogsServer) error {
	if err := checkInspector(in.Namespace, in.Driver); err != nil {
		return err
	}
	if in.Follow {
		return status.Error(codes.Unimplemented, "logs of containers that are followed are not modelled by the lab's simulated Talos nodes")
	}
	all := s.b.containers()
	i := slices.IndexFunc(all, func(c container) bool {
		pod, rest, _ := strings.Cut(in.Id, ":")
		name, id, _ := strings.Cut(rest, ":")
		return c.pod == pod && c.name == name && strings.Contains(c.id, id)
	})
	if i < 0 {
		return status.Errorf(codes.Unknown, "container %q not found", in.Id)
	}
	s.b.site.mu.Lock()
	plane := s.b.planeLocked()
	s.b.site.mu.Unlock()
	if plane == nil {
		return status.Error(codes.Unknown, "no log available")
	}
	text, err := plane.Log(all[i].name, all[i].cfg)
	if err != nil {
		return err
	}
	lines := slices.Collect(bytes.Lines(text))
	if in.TailLines >= 0 {
		lines = lines[max(0, len(lines)-int(in.TailLines)):]
	}
	now := time.Now().UTC().Format(time.RFC3339Nano)
	for _, line := range lines {
		if err := out.Send(&common.Data{Bytes: fmt.Appendf(nil, "%s stderr F %s", now, line)}); err != nil {
			return err
		}
	}
	return nil
}
