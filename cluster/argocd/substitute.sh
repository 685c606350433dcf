# Prints the manifests of this folder with the values of the cluster settings: the plugin cluster-settings of Argo CD runs it in bash. Each
# file of $SETTINGS_DIR is a setting. It replaces what Flux's postBuild.substituteFrom replaces: ${NAME}, ${NAME:=default},
# ${NAME:-default}, and $$, which becomes $, so that $${NAME} stays as ${NAME}. A name without a value is an error, and so is another form
# of an expression. What Flux would not remove with its manifest, by the annotation kustomize.toolkit.fluxcd.io/prune: disabled, Argo CD
# does not remove either.
set -euo pipefail

manifests() {
  for name in kustomization.yaml kustomization.yml Kustomization; do
    if [ -e "$name" ]; then
      kustomize build .
      return
    fi
  done
  find . -type f \( -name '*.yaml' -o -name '*.yml' \) | LC_ALL=C sort | while IFS= read -r file; do
    printf -- '---\n'
    cat "$file"
    printf '\n'
  done
}

manifests | perl -e '
use strict;
my $settings = shift;
local $/;
my %values;

sub value {
  my ($name) = @_;
  return $values{$name} if exists $values{$name};
  open(my $file, "<", "$settings/$name") or return $values{$name} = undef;
  return $values{$name} = <$file> // "";
}

sub replaced {
  my ($expression) = @_;
  $expression =~ /^([A-Za-z_][A-Za-z0-9_]*)(?:(:?)[-=](.*))?$/s
    or die "\${$expression} is not a form that is replaced; write \${NAME}, \${NAME:=default} or \$\${NAME}\n";
  my ($name, $colon, $default) = ($1, $2, $3);
  my $value = value($name);
  return $value if defined $value && !(defined $default && $colon && $value eq "");
  return $default if defined $default;
  die "\${$name} is not a setting of this cluster; add it to gitops.settings of the stack file, or write \$\${$name}\n";
}

for my $document (split(/^(?=---)/m, <STDIN>)) {
  if ($document !~ m{^\s+["\x27]?kustomize\.toolkit\.fluxcd\.io/substitute["\x27]?:\s*["\x27]?disabled}m) {
    $document =~ s/(\$\$)|\$\{([^{}]*)\}/defined $1 ? "\$" : replaced($2)/ge;
  }
  if ($document !~ m{^\s+argocd\.argoproj\.io/sync-options:}m) {
    $document =~ s{^([ ]*)annotations:\n(?=(?:\1[ ]+.*\n)*?\1[ ]+kustomize\.toolkit\.fluxcd\.io/prune:[ ]*["\x27]?disabled)}
      {$1annotations:\n$1  argocd.argoproj.io/sync-options: Prune=false,Delete=false\n}m;
  }
  print $document;
}
' "$SETTINGS_DIR"
