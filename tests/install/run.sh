#!/usr/bin/env bash
# What is installed works away from the source tree: recipes with their data, completions, the manual page.
# usage: tests/install/run.sh BUILD_FOLDER
set -euo pipefail
build=$(cd "$1" && pwd)
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
fail() { echo "install: $*"; exit 1; }

# Staged as a packager does it, then moved: no path of the build may be needed.
DESTDIR=$scratch/stage cmake --install "$build" --prefix /usr >"$scratch/log" || fail "$(cat "$scratch/log")"
mv "$scratch/stage/usr" "$scratch/moved"
cd "$scratch"
unset WEFT_RECIPES
share=moved/share

# A recipe that only the moved tree has shows which folder is read.
printf 'summary: of the moved tree\nextends: tiny\n' >$share/weft/recipes/only_here.yaml
moved/bin/weft recipes | grep -q only_here || fail "weft recipes does not read the recipes beside it"
moved/bin/weft train only_here train.train_iters=1 >run.log 2>&1 || fail "a recipe does not train: $(cat run.log)"
grep -q "^data  *.*moved/share/weft/recipes/corpus.txt" run.log ||
  fail "the recipe's text is not the installed one: $(grep '^data' run.log)"

bash -c "source $share/bash-completion/completions/weft && complete -p weft" >/dev/null ||
  fail "bash does not complete weft"
head -1 $share/zsh/*/_weft | grep -q '^#compdef weft' || fail "zsh does not complete weft"
grep -q '^complete -c weft' $share/fish/vendor_completions.d/weft.fish || fail "fish does not complete weft"
gunzip -c $share/man/man1/weft.1.gz | grep -q '^\.TH WEFT 1' || fail "there is no manual page"
for file in LICENSE README.md changelog.gz copyright; do
  [ -s $share/doc/weft/$file ] || fail "$file is missing"
done
[ -x $share/weft/mpirun.sh ] || fail "mpirun.sh cannot be run"
