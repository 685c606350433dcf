package docs

import (
	"fmt"
	"strings"
)

// FirstAppPage is the page whose blocks of YAML are the files of an application.
const FirstAppPage = "docs/first-app.md"

// Files of the application, and where the page has that of the cluster's folder.
const (
	appFolder    = "kubernetes/apps/notes/"
	appList      = appFolder + "kustomization.yaml"
	appSecret    = appFolder + "secret.yaml"
	ofAnyCluster = "kubernetes/clusters/STACK/workloads"
)

// volumeParts are the places at which the page has a reader leave the volume out, besides its file.
var volumeParts = map[string]string{
	appList: "  - volume.yaml\n",
	appFolder + "deployment.yaml": `          volumeMounts:
            - {name: data, mountPath: /data}
      volumes:
        - name: data
          persistentVolumeClaim: {claimName: notes}
`,
	appFolder + "release.yaml": `  postRenderers:
    - kustomize:
        patches:
          - target: {kind: Deployment}
            patch: |
              - {op: replace, path: /spec/template/spec/volumes/0, value: {name: data, persistentVolumeClaim: {claimName: notes}}}
              - {op: add, path: /spec/strategy, value: {type: Recreate}}
`,
	ofAnyCluster + "/notes.yaml": "    - name: storage\n",
}

// App is how a reader of the page makes the application.
type App struct {
	Cluster string // folder that Flux applies
	Secret  string // what kubeseal or sops writes
	Volume  bool   // there is a StorageClass
	Chart   bool   // from a chart
}

// Files returns the files of the application as the text of the page has them, by their names in a repository.
func (a App) Files(text string) (map[string]string, error) {
	files := map[string]string{}
	for _, block := range Blocks(FirstAppPage, text) {
		if block.Language != "yaml" {
			continue
		}
		name, found := strings.CutPrefix(block.Lines[0], "# ")
		if !found {
			return nil, fmt.Errorf("%s:%d: the first line does not name the file", FirstAppPage, block.Line)
		}
		files[name] = strings.Join(block.Lines, "\n") + "\n"
	}
	var problems []string
	replace := func(name, was, is string) {
		if strings.Count(files[name], was) != 1 {
			problems = append(problems, fmt.Sprintf("%s: %s: has not once:\n%s", FirstAppPage, name, was))
		}
		files[name] = strings.Replace(files[name], was, is, 1)
	}
	if !a.Volume {
		for name, part := range volumeParts {
			replace(name, part, "")
		}
		delete(files, appFolder+"volume.yaml")
	}
	workload, other := "deployment.yaml", "release.yaml"
	if a.Chart {
		replace(appList, workload, other)
		workload, other = other, workload
	}
	delete(files, appFolder+other)
	if files[appFolder+workload] == "" || problems != nil {
		return nil, fmt.Errorf("%s: has not the files that the tests know: %s", FirstAppPage, strings.Join(problems, "\n"))
	}
	files[appSecret] = a.Secret
	placed := map[string]string{}
	for name, content := range files {
		placed[strings.Replace(name, ofAnyCluster, a.Cluster, 1)] = content
	}
	return placed, nil
}
