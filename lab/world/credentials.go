package world

import (
	"encoding/base64"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/siderolabs/crypto/x509"
	clientconfig "github.com/siderolabs/talos/pkg/machinery/client/config"
	"github.com/siderolabs/talos/pkg/machinery/config"
	"github.com/siderolabs/talos/pkg/machinery/config/generate/secrets"
	"github.com/siderolabs/talos/pkg/machinery/role"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/tools/clientcmd/api"
)

const credentialLifetime = 24 * time.Hour

// credentials adds a context for a cluster to the kubeconfig and the talosconfig that commands in the lab use by
// default. They belong to the lab; those that the stack exports are separate.
func (w *World) credentials(cfg config.Provider) error {
	w.kube.mu.Lock()
	defer w.kube.mu.Unlock()
	return errors.Join(w.kubeconfig(cfg), w.talosconfig(cfg))
}

func (w *World) kubeconfig(cfg config.Provider) error {
	name, ca := cfg.Cluster().Name(), cfg.Cluster().IssuingCA()
	authority, err := x509.NewCertificateAuthorityFromCertificateAndKey(ca)
	if err != nil {
		return fmt.Errorf("kubeconfig of %s: %w", name, err)
	}
	pair, err := x509.NewKeyPair(authority, x509.CommonName("admin"), x509.Organization("system:masters"),
		x509.NotAfter(time.Now().Add(credentialLifetime)))
	if err != nil {
		return fmt.Errorf("kubeconfig of %s: %w", name, err)
	}
	pem := x509.NewCertificateAndKeyFromKeyPair(pair)
	file, err := clientcmd.LoadFromFile(w.Home.Kubeconfig())
	if errors.Is(err, os.ErrNotExist) {
		file, err = api.NewConfig(), nil
	}
	if err != nil {
		return err
	}
	context := "admin@" + name
	file.Clusters[name] = &api.Cluster{Server: cfg.Cluster().Endpoint().String(), CertificateAuthorityData: ca.Crt}
	file.AuthInfos[context] = &api.AuthInfo{ClientCertificateData: pem.Crt, ClientKeyData: pem.Key}
	file.Contexts[context] = &api.Context{Cluster: name, AuthInfo: context}
	if file.CurrentContext == "" {
		file.CurrentContext = context
	}
	return clientcmd.WriteToFile(*file, w.Home.Kubeconfig())
}

func (w *World) talosconfig(cfg config.Provider) error {
	name, ca := cfg.Cluster().Name(), cfg.Machine().Security().IssuingCA()
	admin, err := secrets.NewAdminCertificateAndKey(time.Now(), ca, role.MakeSet(role.Admin), credentialLifetime)
	if err != nil {
		return fmt.Errorf("talosconfig of %s: %w", name, err)
	}
	file, err := clientconfig.Open(w.Home.Talosconfig())
	if err != nil {
		return fmt.Errorf("talosconfig: %w", err)
	}
	b64 := base64.StdEncoding.EncodeToString
	var endpoints []string
	for _, machine := range w.site.Machines() {
		if machine.Cluster == name && machine.Type == "controlplane" && len(machine.Addresses) > 0 {
			endpoints = append(endpoints, machine.Addresses[0].Addr().String())
		}
	}
	file.Contexts[name] = &clientconfig.Context{Endpoints: endpoints, Nodes: endpoints[:min(1, len(endpoints))], CA: b64(ca.Crt),
		Crt: b64(admin.Crt), Key: b64(admin.Key)}
	if file.Context == "" {
		file.Context = name
	}
	return file.Save(w.Home.Talosconfig())
}
