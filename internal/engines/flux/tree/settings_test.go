package tree

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/slipway-platform/slipway/cluster"
	"github.com/slipway-platform/slipway/tests/clusters"
	"github.com/slipway-platform/slipway/tests/golden"
)

// ours are the settings of the tree in this repository.
func ours(t *testing.T) map[string]Setting {
	t.Helper()
	settings, err := Settings(os.DirFS(root), "kubernetes/clusters/infra")
	require.NoError(t, err)
	return settings
}

func TestSettings_OfTheTreeAreThoseThatItsManifestsUse(t *testing.T) {
	reader, defaults := newReader(os.DirFS(root)), map[string]string{}
	require.NoError(t, fs.WalkDir(os.DirFS(root), "kubernetes", func(name string, _ fs.DirEntry, err error) error {
		if filepath.Ext(name) != ".yaml" || filepath.Base(name) == SettingsFile {
			return err
		}
		text, err := fs.ReadFile(os.DirFS(root), name)
		for _, match := range choice.FindAllStringSubmatch(string(text), -1) {
			defaults[match[1]] = match[2]
		}
		_, broken := reader.objects(name)
		return errors.Join(err, broken)
	}))
	for _, setting := range cluster.Settings {
		delete(defaults, setting.Key)
		delete(reader.used, setting.Key)
	}
	for key := range reader.own {
		delete(defaults, key)
		delete(reader.used, key)
	}
	assert.Equal(t, `"`, defaults[quote])
	for key, setting := range ours(t) {
		if setting.Meaning != "" {
			assert.True(t, reader.used[key], key)
			assert.Equal(t, defaults[key], setting.Default, key)
		}
		delete(reader.used, key)
	}
	delete(reader.used, ofOneConsumer)
	delete(reader.used, quote)
	maps.DeleteFunc(reader.used, func(key string, _ bool) bool { return strings.HasPrefix(key, "STORAGE_MONITOR_") }) // of the connection
	assert.Empty(t, slices.Sorted(maps.Keys(reader.used)), "settings that the file does not have")
}

func TestSettings_AreDocumented(t *testing.T) {
	settings, rows := ours(t), ""
	for _, key := range slices.Sorted(maps.Keys(settings)) {
		setting := settings[key]
		if setting.Meaning == "" {
			continue // follows the stack file
		}
		var values []string
		for _, value := range setting.Choices {
			values = append(values, "`"+value+"`")
		}
		if len(values) == 0 {
			values = []string{"such as `" + setting.example() + "`"}
		}
		byDefault := "required"
		if setting.Default != "" {
			byDefault = "`" + setting.Default + "`"
		}
		for _, other := range slices.Sorted(maps.Keys(settings)) {
			for _, value := range slices.Sorted(maps.Keys(settings[other].Needs)) {
				if slices.Contains(settings[other].Needs[value], key) {
					byDefault += ", with " + strings.TrimSuffix(strings.ReplaceAll(because(other, value), " is ", ": "), " needs it")
				}
			}
		}
		rows += fmt.Sprintf("| `%s` | %s | %s | %s |\n", key, strings.Replace(byDefault, "required, with", "with", 1),
			strings.Join(values, " or "), setting.Meaning)
	}
	golden.Part(t, root+"/docs/gitops.md", "settings of the tree",
		"| setting | default | values | meaning |\n| --- | --- | --- | --- |\n"+rows)
}

// withTree is a tree with one manifest, and with the settings of the repository's.
func withTree(t *testing.T, manifest string) fstest.MapFS {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root, "kubernetes", SettingsFile))
	require.NoError(t, err)
	return fstest.MapFS{
		"kubernetes/slipway-settings.yaml":           {Data: text},
		"kubernetes/clusters/infra/object.yaml":      {Data: []byte(manifest)},
		"kubernetes/clusters/apps/object.yaml":       {Data: []byte("kind: ConfigMap\n")},
		"kubernetes/clusters/all/kustomization.yaml": {Data: []byte("kind: Kustomization\nresources: [a]\n")},
		"kubernetes/clusters/all/a/object.yaml":      {Data: []byte("kind: ConfigMap\n")},
	}
}

// given is the cluster infra with settings, and whatever else.
func given(t *testing.T, settings map[string]string, edits ...func(*cluster.Cluster)) *cluster.Cluster {
	t.Helper()
	return clusters.Infra(t, append(edits, func(c *cluster.Cluster) { c.GitOps.Settings = settings })...)
}

func TestCheckStack_NamesASettingOfAnotherFormThanTheTreeTakes(t *testing.T) {
	for says, settings := range map[string]map[string]string{
		"": {
			"DOMAIN": "infra.example.com", "ISSUER": "acme", "ACME_EMAIL": "ops@example.com", "DNS_SERVER": "10.25.11.2", "DNS": "rfc2136",
			"METRICS_SIZE": "20Gi", "LOGS_RETENTION": "2w", "ETCD_BACKUP_SCHEDULE": "@daily", "OF_ONES_OWN": "anything",
			"ALERT_EMAIL": "ops@example.com", "DB_SECRET_NAME": "db", // like ACME_EMAIL and DNS_KEY_NAME, which are others
		},
		"gitops.settings.DOMAIN: Infra has another form than the manifests take; write it like infra.example.com": {"DOMAIN": "Infra"},
		"gitops.settings.ISSUER: letsencrypt is not known; write one of own-ca, acme, acme-cloudflare":            {"ISSUER": "letsencrypt"},
		"gitops.settings.ISSUER: own-CA is not known; did you mean own-ca?":                                       {"ISSUER": "own-CA"},
		"gitops.settings.DNS_SERVER: is missing, and DNS is rfc2136; add it, such as 10.25.11.2":                  {"DNS": "rfc2136"},
		"gitops.settings.CLOUDFLARE_ZONE: is missing, and DNS is cloudflare; " +
			"add it, such as 023e105f4ecef8ad9ca31a8372d0c353": {"DNS": "cloudflare"},
		"gitops.settings.CLOUDFLARE_ZONE: example.com has another form than the manifests take; " +
			"write it like 023e105f4ecef8ad9ca31a8372d0c353": {"DNS": "cloudflare", "CLOUDFLARE_ZONE": "example.com"},
		"gitops.settings.ACME_EMAIL: is missing, and ISSUER is acme-cloudflare; add it, such as ops@example.com": {"ISSUER": "acme-cloudflare"},
		"gitops.settings.ACME_EMAIL: the value has another form than the manifests take; write it like ops@example.com": {
			"ACME_EMAIL": `"ops"@example.com`},
		"gitops.settings.ALERTS: slack is not known; write one of none, webhook": {"ALERTS": "slack"},
		"gitops.settings.ALERTS_TYPE: Slack is not known; did you mean slack?":   {"ALERTS_TYPE": "Slack"},
		"gitops.settings.ALERTMANAGER_TYPE: googlechat is not known; write one of generic, slack, discord, msteams": {
			"ALERTMANAGER_TYPE": "googlechat"},
		"gitops.settings.KEYS: 1password is not known; did you mean onepassword?":             {"KEYS": "1password"},
		"gitops.settings.METRICS_SIZE: 20GB is no quantity of Kubernetes; write it like 20Gi": {"METRICS_SIZE": "20GB"},
		"gitops.settings.METRICS_RETENTION: \"1 month\" has another form than the manifests take; " +
			"write it like 30d": {"METRICS_RETENTION": "1 month"},
		"gitops.settings.LOGS_RETENTION: 6 has another form than the manifests take; write it like 14d": {"LOGS_RETENTION": "6"},
		"gitops.settings.ETCD_BACKUP_SCHEDULE: hourly has not five parts; write minute, hour, day, month and weekday, " +
			"such as 17 */6 * * *": {"ETCD_BACKUP_SCHEDULE": "hourly"},
		"gitops.settings.DOMIAN: is used by no manifest; did you mean DOMAIN?": {"DOMIAN": "infra.example.com"},
	} {
		advice, problems, err := CheckStack(withTree(t, "kind: ConfigMap\ndata: {a: '${DOMAIN} ${OWN:=1}'}\n"), given(t, settings))
		require.NoError(t, err)
		assert.Empty(t, advice)
		assert.Equal(t, says, strings.TrimSpace(problems.Error()))
	}
}

func TestCheckStack_NamesTheSettingAndNotThePathThatItLeadsTo(t *testing.T) {
	layer := `apiVersion: kustomize.toolkit.fluxcd.io/v1
kind: Kustomization
metadata: {name: external-dns}
spec: {path: "./dns/${DNS:=none}", sourceRef: {kind: GitRepository, name: flux-system}}
`
	_, problems, err := CheckStack(withTree(t, layer), given(t, map[string]string{"DNS": "rfc2137", "OWN": "x"}))
	require.NoError(t, err)
	assert.EqualError(t, problems, "gitops.settings.DNS: rfc2137 is not known; did you mean rfc2136?")
	_, problems, err = CheckStack(withTree(t, layer), given(t, nil))
	assert.Empty(t, problems)
	assert.ErrorContains(t, err, "Kustomization external-dns: its path dns/none is not in the repository")
}

func TestCheckStack_NamesTheFileThatIsStillToBeCommitted(t *testing.T) {
	manifests, file := withTree(t, ""), "kubernetes/clusters/infra/kustomization.yaml"
	manifests[file] = &fstest.MapFile{Data: []byte("resources: [object.yaml, key.yaml]\n")}
	_, problems, err := CheckStack(manifests, given(t, nil))
	assert.Empty(t, problems)
	const missing = ": kubernetes/clusters/infra/key.yaml is not in the repository; commit it, or remove its line"
	assert.EqualError(t, err, file+missing)

	manifests[file].Data = []byte("# key.yaml is the Secret a/b, encrypted.\nresources: [object.yaml, key.yaml]\n")
	_, _, err = CheckStack(manifests, given(t, nil))
	assert.EqualError(t, err, file+missing+" (its comment says: key.yaml is the Secret a/b, encrypted.)")
}

func TestCheckStack_NamesTheCommandThatWritesAnArea(t *testing.T) {
	for area, remedy := range map[string]string{
		"netwroking": "did you mean kubernetes/infrastructure/networking? Otherwise commit it, or remove its line",
		"backup":     "if it is an area of Slipway, write it with: slipway manifests backup; otherwise commit it, or remove its line",
	} {
		manifests, file := withTree(t, ""), "kubernetes/clusters/infra/kustomization.yaml"
		manifests["kubernetes/infrastructure/networking/kustomization.yaml"] = &fstest.MapFile{Data: []byte("resources: []\n")}
		manifests[file] = &fstest.MapFile{Data: []byte("resources: [../../infrastructure/" + area + "]\n")}
		_, _, err := CheckStack(manifests, given(t, nil))
		assert.EqualError(t, err, file+": kubernetes/infrastructure/"+area+" is not in the repository; "+remedy)
	}
}

func TestCheckStack_AsksForWhatScheduledSnapshotsNeed(t *testing.T) {
	scheduled := func(c *cluster.Cluster) {
		c.Lifecycle.Snapshots.Scheduled = true
		c.Lifecycle.Snapshots.Recipients = []string{"age1lvyvwawkr0mcnnnncaghunadrqkmuf9e6507x9y920xxpp866cnql7dp2z"}
	}
	_, problems, err := CheckStack(withTree(t, "kind: ConfigMap\n"), given(t, map[string]string{"ETCD_BACKUP_BUCKET": "etcd"}, scheduled))
	require.NoError(t, err)
	assert.EqualError(t, problems, "gitops.settings.ETCD_BACKUP_ENDPOINT: is missing, and lifecycle.snapshots.scheduled needs it; "+
		"add it, such as https://s3.example.com")
}

func TestCheckStack_LeavesANameAloneThatAManifestUses(t *testing.T) {
	_, problems, err := CheckStack(withTree(t, "kind: ConfigMap\ndata: {a: '${DOMAINS:=}'}\n"), given(t, map[string]string{"DOMAINS": "a b"}))
	require.NoError(t, err)
	assert.Empty(t, problems)
}

func TestCheckStack_ChecksThePathAsFarAsTheCheckoutHasIt(t *testing.T) {
	for folder, want := range map[string][2]string{
		"./kubernetes/clusters/infra": {},
		"kubernetes/clusters/infar": {"gitops.path: kubernetes/clusters/infar is no folder of this checkout; if the cluster is applied from " +
			"this repository, did you mean kubernetes/clusters/infra?"},
		"clusters/home": {"gitops.path: clusters/home is no folder of this checkout; make it there, unless the cluster is applied from another " +
			"repository"},
		"kubernetes/slipway-settings.yaml": {1: "gitops.path: kubernetes/slipway-settings.yaml is a file, and a folder is applied; write " +
			"kubernetes/clusters/infra"},
		"kubernetes/clusters/infra/object.yaml": {1: "gitops.path: kubernetes/clusters/infra/object.yaml is a file, and a folder is " +
			"applied; write kubernetes/clusters/infra"},
	} {
		stack := given(t, nil, func(c *cluster.Cluster) { c.GitOps.Path = folder })
		advice, problems, err := CheckStack(withTree(t, "kind: ConfigMap\n"), stack)
		require.NoError(t, err)
		assert.Equal(t, want[0], advice.Error())
		assert.Equal(t, want[1], problems.Error())
	}
}

func TestCheckStack_RefusesAFolderThatDeclaresNothing(t *testing.T) {
	const folder = "kubernetes/clusters/empty"
	for file, text := range map[string]string{
		"README.md":          "kind: ConfigMap\n",
		"object.yaml":        "# nothing yet\n",
		"kustomization.yaml": "kind: Kustomization\nresources: []\n",
	} {
		manifests := withTree(t, "kind: ConfigMap\n")
		manifests[folder+"/"+file] = &fstest.MapFile{Data: []byte(text)}
		_, problems, err := CheckStack(manifests, given(t, nil, func(c *cluster.Cluster) { c.GitOps.Path = folder }))
		require.NoError(t, err)
		assert.EqualError(t, problems, "gitops.path: "+folder+" declares nothing, and a folder without manifests fails; "+
			"put a manifest there, or write the folder that has some", file)
	}
	for _, text := range []string{"resources: [https://example.com/a.yaml]\n", "configMapGenerator: [{name: a, literals: [a=b]}]\n"} {
		manifests := withTree(t, "kind: ConfigMap\n")
		manifests[folder+"/kustomization.yaml"] = &fstest.MapFile{Data: []byte(text)}
		_, problems, err := CheckStack(manifests, given(t, nil, func(c *cluster.Cluster) { c.GitOps.Path = folder }))
		require.NoError(t, err)
		assert.Empty(t, problems, text)
	}
}

func TestCheckStack_WarnsOfAStorageClassOfAnotherRole(t *testing.T) {
	manifests := withTree(t, "kind: ConfigMap\n")
	const file = "kubernetes/infrastructure/storage/class/class.yaml"
	text, err := os.ReadFile(filepath.Join(root, file))
	require.NoError(t, err)
	manifests[file] = &fstest.MapFile{Data: text}
	none := func(c *cluster.Cluster) {
		c.Storage, c.NodePools[1].DataDisks = cluster.Storage{Role: cluster.StorageNone, Classes: []string{"nfs", "ceph-block"}}, nil
	}
	advice, problems, err := CheckStack(manifests, given(t, nil, none))
	require.NoError(t, err)
	assert.Empty(t, problems)
	assert.EqualError(t, advice, "storage.classes[1]: ceph-block is declared by "+file+", which this stack with storage.role: none and "+
		"without storage.local does not apply; remove it, or write the storage.role or storage.local that applies the file")
	manifests["kubernetes/clusters/infra/object.yaml"] = &fstest.MapFile{Data: text}
	advice, _, err = CheckStack(manifests, given(t, nil, none))
	require.NoError(t, err)
	assert.Empty(t, advice)
}

func TestCheckStack_WarnsOfLocalStorageThatTheTreeDoesNotMake(t *testing.T) {
	const manifest = "apiVersion: storage.k8s.io/v1\nkind: StorageClass\nmetadata: {name: local-path}\nprovisioner: rancher.io/local-path\n"
	stack := given(t, nil)
	stack.Storage.Local, stack.Storage.Classes = "data", []string{"local-path"}
	advice, _, err := CheckStack(withTree(t, "kind: ConfigMap\n"), stack)
	require.NoError(t, err)
	assert.EqualError(t, advice, "storage.local: data, and no manifest below gitops.path makes a StorageClass of rancher.io/local-path; "+
		"add the folders kubernetes/infrastructure/storage of this release, or remove it")
	advice, _, err = CheckStack(withTree(t, manifest), stack)
	require.NoError(t, err)
	assert.Empty(t, advice)
}

func TestCheckStack_WarnsOfAVolumeThatNoStorageClassMakes(t *testing.T) {
	const (
		claim = "accessModes: [ReadWriteOnce], resources: {requests: {storage: '${SIZE:=1Gi}'}}"
		store = "kind: VLSingle\nmetadata: {name: logs}\nspec: {storage: {" + claim + "}}\n"
		class = "---\napiVersion: storage.k8s.io/v1\nkind: StorageClass\nmetadata: {name: nfs}\n"
	)
	for text, warned := range map[string]bool{
		store: true,
		"kind: HelmRelease\nmetadata: {name: stack}\nspec: {values: {vmsingle: {spec: {storage: {" + claim + "}}}}}\n":           true,
		"kind: StatefulSet\nmetadata: {name: a}\nspec: {volumeClaimTemplates: [{metadata: {name: a}, spec: {" + claim + "}}]}\n": true,
		store + class: false,
		"kind: PersistentVolumeClaim\nmetadata: {name: a}\nspec: {storageClassName: '', " + claim + "}\n":               false,
		"kind: PersistentVolumeClaim\nmetadata: {name: a}\nspec: {storageClassName: nfs, " + claim + "}\n":              false,
		"kind: PersistentVolumeClaim\nmetadata: {name: a}\nspec: {volumeName: a, " + claim + "}\n":                      false,
		"kind: PersistentVolume\nmetadata: {name: a}\nspec: {accessModes: [ReadWriteOnce], capacity: {storage: 1Gi}}\n": false,
		"kind: A\nmetadata: {name: a}\nspec: {accessModes: {type: array}, resources: {type: object}}\n":                 false,
	} {
		for _, engine := range []cluster.Engine{cluster.EngineFlux, cluster.EngineArgoCD} {
			stack := given(t, nil)
			stack.Storage, stack.GitOps.Engine = cluster.Storage{Role: cluster.StorageNone}, engine
			advice, _, err := CheckStack(withTree(t, text), stack)
			require.NoError(t, err)
			const said = "storage.classes: no manifest below gitops.path makes a StorageClass, and "
			assert.Equal(t, warned, strings.Contains(advice.Error(), said), "%s: %v", text, advice)
			stack.Storage.Classes = []string{"nfs"}
			advice, _, err = CheckStack(withTree(t, text), stack)
			require.NoError(t, err)
			assert.NotContains(t, advice.Error(), said, "the user says that there will be a class")
		}
	}
}

// The areas are those of this repository.
func TestCheckStack_WarnsOfMonitoringWithoutStorage(t *testing.T) {
	stack := given(t, map[string]string{"DOMAIN": "infra.example.com"}, func(c *cluster.Cluster) {
		c.Storage, c.NodePools[1].DataDisks = cluster.Storage{Role: cluster.StorageNone}, nil
	})
	advice, _, err := CheckStack(os.DirFS(root), stack)
	require.NoError(t, err)
	assert.ErrorContains(t, advice, "storage.classes: no manifest below gitops.path makes a StorageClass, and HelmRelease stack in "+
		"kubernetes/infrastructure/observability/metrics/release.yaml waits for a volume without one; bring a class by the area storage, ")
}

// The tree of this repository makes the class that the stack file names, in both of its folders, and no other one.
func TestCheckStack_KnowsTheLocalClassOfTheTree(t *testing.T) {
	for _, role := range []cluster.StorageRole{cluster.StorageNone, cluster.StorageProvider} {
		data := cluster.DataDisk{Name: "data", Size: cluster.GiB, Use: cluster.DiskVolume}
		stack := given(t, map[string]string{"DOMAIN": "infra.example.com"}, func(c *cluster.Cluster) {
			c.NodePools[1].DataDisks = append(c.NodePools[1].DataDisks, data)
			if c.Storage.Local, c.Storage.Classes = "data", []string{"local-path"}; role == cluster.StorageNone {
				c.Storage.Role, c.Storage.Vault, c.NodePools[1].DataDisks = role, "", []cluster.DataDisk{data}
			}
		})
		advice, problems, err := CheckStack(os.DirFS(root), stack)
		require.NoError(t, err)
		assert.Empty(t, problems)
		assert.NotContains(t, advice.Error(), "storage.", role)
		stack.Storage.Local = ""
		advice, _, err = CheckStack(os.DirFS(root), stack)
		require.NoError(t, err)
		assert.ErrorContains(t, advice, "storage.classes[0]: local-path is declared by kubernetes/infrastructure/storage/local/", role)
	}
}

func TestCheckStack_WarnsOfTenantsWithoutAServiceAccount(t *testing.T) {
	const layer = "apiVersion: kustomize.toolkit.fluxcd.io/v1\nkind: Kustomization\nmetadata: {name: %s}\n" +
		"spec: {interval: 1h, prune: true, sourceRef: {kind: GitRepository, name: flux-system}, %s}\n---\n"
	tenants := func(c *cluster.Cluster) { c.GitOps.Flux.Multitenant = true }
	bare := fmt.Sprintf(layer, "a", "wait: true") + fmt.Sprintf(layer, "b", "wait: true")
	advice, _, err := CheckStack(withTree(t, bare), given(t, nil, tenants))
	require.NoError(t, err)
	assert.EqualError(t, advice, "gitops.flux.multitenant: kubernetes/clusters/infra/object.yaml declares the Kustomization a without "+
		"spec.serviceAccountName (and 1 more): Flux applies it with the rights of the account default of its namespace; "+
		"name an account with enough rights there, or in gitops.flux.tenantServiceAccount")
	for manifest, edit := range map[string]func(*cluster.Cluster){
		bare: func(*cluster.Cluster) {},
		fmt.Sprintf(layer, "a", "serviceAccountName: team"): tenants,
		bare + "\n": func(c *cluster.Cluster) { tenants(c); c.GitOps.Flux.TenantServiceAccount = "team" },
	} {
		advice, _, err := CheckStack(withTree(t, manifest), given(t, nil, edit))
		require.NoError(t, err)
		assert.Empty(t, advice)
	}
}

func TestCheckStack_WarnsOfASecretInPlainText(t *testing.T) {
	const warning = "gitops.path: kubernetes/clusters/infra/object.yaml has the values of the Secret a in plain text; " +
		"encrypt it with SOPS or as a SealedSecret, or write an ExternalSecret"
	for secret, want := range map[string]string{
		"stringData: {password: hunter2}":            warning,
		"data: {password: aHVudGVyMg==}":             warning,
		"type: kubernetes.io/service-account-token":  "",
		"stringData: {cluster: '${CLUSTER_NAME}'}":   "",
		"data: {password: 'ENC[x]'}\nsops: {mac: x}": "",
	} {
		advice, _, err := CheckStack(withTree(t, "apiVersion: v1\nkind: Secret\nmetadata: {name: a}\n"+secret+"\n"), given(t, nil))
		require.NoError(t, err)
		assert.Equal(t, want, advice.Error(), secret)
		assert.NotContains(t, advice.Error(), "hunter2")
	}
}

func TestContains_NamesAFolderThatAppliesAnotherClusterToo(t *testing.T) {
	repository := withTree(t, "kind: ConfigMap\n")
	for paths, want := range map[[2]string]string{
		{"kubernetes/clusters", "./kubernetes/clusters/infra"}: "gitops.path: kubernetes/clusters contains kubernetes/clusters/infra, " +
			"which another stack applies; write the folder of this cluster alone",
		{".", "kubernetes/clusters/infra"}: "gitops.path: . contains kubernetes/clusters/infra, which " +
			"another stack applies; write the folder of this cluster alone",
		{"kubernetes/clusters/infra", "kubernetes/clusters"}:       "",
		{"kubernetes/clusters/infra", "kubernetes/clusters/infra"}: "",
		{"kubernetes/clusters/all", "kubernetes/clusters/all/a"}:   "",
		{"kubernetes/clusters/in", "kubernetes/clusters/infra"}:    "",
	} {
		problem := Contains(repository, cluster.GitOps{Enabled: true, Path: paths[0]}, cluster.GitOps{Enabled: true, Path: paths[1]})
		if want == "" {
			assert.Nil(t, problem, paths)
			continue
		}
		assert.EqualError(t, problem, want)
	}
}

func TestSettings_OfAFileWithFaultsAreNone(t *testing.T) {
	for text, want := range map[string]string{
		"A: {form: nothing}":                          "slipway-settings.yaml: A: nothing is no form",
		"A: {pattern: '('}":                           "slipway-settings.yaml: A: error parsing regexp",
		"A: {choices: [a], default: b}":               "slipway-settings.yaml: A: b is not known",
		"A: {quantity: true, example: 20GB}":          "slipway-settings.yaml: A: 20GB is no quantity of Kubernetes",
		"A: {typ: text}":                              "field typ not found",
		"A: {pattern: '[0-9]+', default: x}\nB: {}\n": "slipway-settings.yaml: A: x has another form than the manifests take",
	} {
		_, err := Settings(fstest.MapFS{SettingsFile: {Data: []byte(text)}}, "clusters/infra")
		assert.ErrorContains(t, err, want)
	}
	own, err := Settings(fstest.MapFS{"clusters/infra/" + SettingsFile: {Data: []byte("A: {}")}}, "clusters/infra")
	require.NoError(t, err)
	assert.Nil(t, own, "Flux would read the file there")
	both, err := Settings(fstest.MapFS{
		SettingsFile: {Data: []byte("A: {meaning: of the user}\nB: {}")}, "kubernetes/" + SettingsFile: {Data: []byte("A: {meaning: near}")},
	}, "kubernetes/clusters/infra")
	require.NoError(t, err)
	assert.Equal(t, map[string]Setting{"A": {Meaning: "near"}, "B": {}}, both)
	none, err := Settings(fstest.MapFS{}, "clusters/infra")
	require.NoError(t, err)
	assert.Nil(t, none)
}
