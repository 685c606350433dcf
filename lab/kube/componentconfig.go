package kube

import (
	"fmt"

	"github.com/siderolabs/talos/pkg/machinery/config/config"
	"sigs.k8s.io/yaml"
)

// object is a configuration before it is encoded as YAML.
type object = map[string]any

// componentConfigs are the configuration files that Talos renders for the API server and the scheduler.
func componentConfigs(cfg config.ClusterConfig, schedulerKubeconfig string) (map[string][]byte, error) {
	files := map[string]object{
		"encryption.yaml": encryption(cfg),
		"authz.yaml":      authorization(cfg.APIServer().AuthorizationConfig()),
		"admission.yaml":  admission(cfg.APIServer().AdmissionControl()),
		"scheduler.yaml":  scheduler(cfg.Scheduler().Config(), schedulerKubeconfig),
	}
	out := map[string][]byte{}
	for name, f := range files {
		raw, err := yaml.Marshal(f)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		out[name] = raw
	}
	return out, nil
}

// encryption has Talos's order of providers: secretbox, AES-CBC, then identity, which reads unencrypted objects.
func encryption(cfg config.ClusterConfig) object {
	var providers []any
	if s := cfg.SecretboxEncryptionSecret(); s != "" {
		providers = append(providers, object{"secretbox": object{"keys": []any{object{"name": "key2", "secret": s}}}})
	}
	if s := cfg.AESCBCEncryptionSecret(); s != "" {
		providers = append(providers, object{"aescbc": object{"keys": []any{object{"name": "key1", "secret": s}}}})
	}
	providers = append(providers, object{"identity": object{}})
	return object{"apiVersion": "apiserver.config.k8s.io/v1", "kind": "EncryptionConfiguration",
		"resources": []any{object{"resources": []any{"secrets"}, "providers": providers}}}
}

// authorization has Node and RBAC first, as in Talos, then those of the machine configuration.
func authorization(extra []config.AuthorizationConfigAuthorizer) object {
	list := []any{object{"type": "Node", "name": "node"}, object{"type": "RBAC", "name": "rbac"}}
	for _, a := range extra {
		if a.Type() == "Node" || a.Type() == "RBAC" {
			continue
		}
		o := object{"type": a.Type(), "name": a.Name()}
		if w := a.Webhook(); len(w) > 0 {
			o["webhook"] = w
		}
		list = append(list, o)
	}
	return object{"apiVersion": "apiserver.config.k8s.io/v1", "kind": "AuthorizationConfiguration", "authorizers": list}
}

func admission(plugins []config.AdmissionPlugin) object {
	list := []any{}
	for _, p := range plugins {
		list = append(list, object{"name": p.Name(), "configuration": p.Configuration()})
	}
	return object{"apiVersion": "apiserver.config.k8s.io/v1", "kind": "AdmissionConfiguration", "plugins": list}
}

func scheduler(user object, kubeconfig string) object {
	c := object{}
	for k, v := range user {
		c[k] = v
	}
	c["apiVersion"], c["kind"] = "kubescheduler.config.k8s.io/v1", "KubeSchedulerConfiguration"
	c["clientConnection"] = object{"kubeconfig": kubeconfig}
	c["leaderElection"] = object{"leaderElect": false} // there is only one of each
	return c
}
