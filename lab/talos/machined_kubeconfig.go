package talos

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"errors"
	"time"

	"github.com/siderolabs/talos/pkg/machinery/api/common"
	"github.com/siderolabs/talos/pkg/machinery/api/machine"
	"google.golang.org/protobuf/types/known/emptypb"

	"github.com/slipway-platform/slipway/lab/talos/kubernetes"
)

// Kubeconfig streams a .tar.gz with one file: a new kubeconfig for an administrator.
func (s *machinedServer) Kubeconfig(_ *emptypb.Empty, out machine.MachineService_KubeconfigServer) error {
	if err := s.requireControlPlane("kubeconfig"); err != nil {
		return err
	}
	s.b.site.mu.Lock()
	cfg := s.b.config
	s.b.site.mu.Unlock()
	content, err := kubernetes.AdminKubeconfig(cfg.Cluster())
	if err != nil {
		return err
	}
	var buf bytes.Buffer
	zip := gzip.NewWriter(&buf)
	archive := tar.NewWriter(zip)
	header := &tar.Header{Typeflag: tar.TypeReg, Name: "kubeconfig", Size: int64(len(content)), ModTime: time.Now(), Mode: 0o600}
	err = archive.WriteHeader(header)
	_, writeErr := archive.Write(content)
	if err := errors.Join(err, writeErr, archive.Close(), zip.Close()); err != nil {
		return err
	}
	return out.Send(&common.Data{Bytes: buf.Bytes()})
}
