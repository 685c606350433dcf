#!/usr/bin/env bash
# What a user would run after main.tf instead of the phases behind TalosCluster: definitions, Cilium, charts in parallel, secrets, Flux. The
# test puts into the folder $1 what Slipway declared for the same cluster: crds/*.yaml, values and names of the charts, objects/*.yaml.
set -euo pipefail
cd "$1"

done_with() { printf '  %-20s after %4d s\n' "$1" "$SECONDS"; }

install() { # NAME: a release, until its workloads are ready
  local name=$1 chart version namespace repo
  IFS=$'\t' read -r chart version namespace repo <"releases/$name.tsv"
  case $chart in
  oci://*) set -- "$chart" ;;
  *) set -- "$chart" --repo "$repo" ;;
  esac
  helm upgrade --install "$name" "$@" --version "$version" --namespace "$namespace" --create-namespace \
    --values "releases/$name.json" --wait --timeout 15m >/dev/null
}

until kubectl get --raw=/readyz >/dev/null 2>&1; do sleep 1; done
done_with "Kubernetes answers"
kubectl apply --server-side --force-conflicts --filename crds >/dev/null
kubectl wait --for=condition=Established --timeout=5m --all crd >/dev/null
done_with CRDs

install "$(cat first)"
kubectl wait --for=condition=Ready --timeout=10m --all nodes >/dev/null
kubectl apply --server-side --force-conflicts --filename before >/dev/null
done_with "Cilium and nodes"

pids=()
for release in releases/*.tsv; do
  name=$(basename "$release" .tsv)
  if [ "$name" != "$(cat first)" ] && [ "$name" != "$(cat last)" ]; then
    install "$name" &
    pids+=($!)
  fi
done
for pid in "${pids[@]}"; do wait "$pid"; done
kubectl apply --server-side --force-conflicts --filename stores >/dev/null
done_with "charts and secrets"

install "$(cat last)"
kubectl apply --server-side --force-conflicts --filename flux >/dev/null
kubectl wait --for=condition=Ready --timeout=15m --namespace=flux-system fluxinstance/flux >/dev/null
until [ "$(kubectl get kustomizations.kustomize.toolkit.fluxcd.io --namespace=flux-system --output=name | wc -l)" -gt 1 ]; do sleep 1; done
kubectl wait --for=condition=Ready --timeout=15m --namespace=flux-system --all kustomizations.kustomize.toolkit.fluxcd.io >/dev/null
done_with Flux
