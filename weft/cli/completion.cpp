// weft completion: scripts for shells, made from the commands, the keys and the flags.
#include "weft/base/text.h"
#include "weft/cli/command.h"
#include "weft/cli/output.h"
#include "weft/config/field.h"
#include "weft/config/flags.h"
#include "weft/config/harness_flags.h"

namespace weft::cli {
namespace {

using base::text;

enum class Shell { Bash, Zsh, Fish };

struct CompletionOptions {
  Shell shell = Shell::Bash;
  std::vector<std::string> commands;
};

// The words a key or flag may have; none where it is open.
struct Choice {
  std::string name;  // "model.fp8", "--moe_a2a_overlap"
  std::vector<std::string> words;
};

// From "one of e4m3, hybrid or null" and "true or false".
std::vector<std::string> words_of(const config::Field& field) {
  std::string_view type = field.type;
  std::vector<std::string> words;
  constexpr std::string_view kNull = " or null", kOneOf = "one of ";
  const bool optional = type.ends_with(kNull);
  if (optional) type.remove_suffix(kNull.size());
  const std::size_t list = type.find(kOneOf);
  if (type == "true or false") {
    words = {"true", "false"};
  } else if (list != std::string_view::npos) {
    for (const std::string& word : base::split(type.substr(list + kOneOf.size()), ',')) {
      words.emplace_back(base::trim(word));
    }
  }
  if (optional && !words.empty()) words.emplace_back("null");
  return words;
}

std::vector<Choice> choices() {
  std::vector<Choice> all;
  for (const config::Field& field : config::fields()) all.push_back({field.key, words_of(field)});
  for (const std::string& name : config::kebab_flag_names()) {
    const auto flag = config::find_kebab_flag(name);
    const bool open = !flag || flag->field == nullptr || name.starts_with("--no-");
    if (!open) all.push_back({name, words_of(*flag->field)});
  }
  for (const config::HarnessFlag& flag : config::harness_flags()) {
    std::vector<std::string> words;
    if (!flag.words.empty()) words = base::split(flag.words, ' ');
    if (flag.takes == config::Takes::Switch) words = {"true", "false"};
    if (flag.name == "moe_flex_dispatcher_backend") words = {"deepep", "hybridep", "None"};
    all.push_back({text("--{}", flag.name), words});
    if (!flag.brief.empty()) all.push_back({text("-{}", flag.brief), words});
  }
  std::erase_if(all, [](const Choice& choice) { return choice.words.empty(); });
  return all;
}

std::vector<std::string> keys() {
  std::vector<std::string> all{"world="};
  for (const config::Field& field : config::fields()) all.push_back(field.key + "=");
  return all;
}

std::vector<std::string> flags() {
  std::vector<std::string> all = config::kebab_flag_names();
  all.emplace_back("--json");
  all.emplace_back("--help");
  for (const config::HarnessFlag& flag : config::harness_flags()) {
    all.push_back(text("--{}", flag.name));
  }
  return all;
}

// Recipes are asked for when they are completed: they come and go.
constexpr const char* kRecipes = "weft recipes 2>/dev/null | awk 'NR > 1 { print $1 }'";

// Bash, and zsh through its bashcompinit. Bash splits words at '=', zsh does not.
constexpr const char* kBash = R"sh(_weft() {{
  local line="${{COMP_LINE:0:$COMP_POINT}}" token before head="" names
  token="${{line##* }}"
  before="${{line% *}}"
  before="${{before##* }}"
  COMPREPLY=()
  if [[ "$token" == *=* ]]; then
    [[ "$COMP_WORDBREAKS" == *=* ]] || head="${{token%%=*}}="
    names="$(_weft_values "${{token%%=*}}")"
    COMPREPLY=($(compgen -P "$head" -W "$names" -- "${{token#*=}}"))
    return
  fi
  if [[ "$COMP_CWORD" == 1 ]]; then
    COMPREPLY=($(compgen -W "{commands}" -- "$token"))
    return
  fi
  names="$(_weft_values "$before")"
  if [[ "$before" == -* && -n "$names" ]]; then
    COMPREPLY=($(compgen -W "$names" -- "$token"))
  elif [[ "$token" == -* ]]; then
    COMPREPLY=($(compgen -W "{flags}" -- "$token"))
  else
    COMPREPLY=($(compgen -W "{keys} $({recipes})" -- "$token"))
    [[ "${{COMPREPLY[*]}}" == *= ]] && type compopt >/dev/null 2>&1 && compopt -o nospace
  fi
}}
)sh";

std::string bash_script(const CompletionOptions& options) {
  std::string script = "_weft_values() {\n  case \"$1\" in\n";
  for (const Choice& choice : choices()) {
    script += text("    {}) echo \"{}\" ;;\n", choice.name, fmt::join(choice.words, " "));
  }
  script += "  esac\n}\n";
  script += fmt::format(fmt::runtime(kBash),
                        fmt::arg("commands", text("{}", fmt::join(options.commands, " "))),
                        fmt::arg("flags", text("{}", fmt::join(flags(), " "))),
                        fmt::arg("keys", text("{}", fmt::join(keys(), " "))),
                        fmt::arg("recipes", kRecipes));
  return script + "complete -F _weft weft\n";
}

std::string zsh_script(const CompletionOptions& options) {
  return "#compdef weft\nautoload -U +X bashcompinit && bashcompinit\n" + bash_script(options);
}

std::string fish_script(const CompletionOptions& options) {
  std::string script = "function __weft_values\n  switch $argv[1]\n";
  for (const Choice& choice : choices()) {
    script +=
        text("    case '{}'\n      printf '%s\\n' {}\n", choice.name, fmt::join(choice.words, " "));
  }
  script += "  end\nend\n";
  script += text(
      "function __weft_words\n"
      "  set -l token (commandline -ct)\n"
      "  if string match -q -- '*=*' $token\n"
      "    set -l key (string replace -r '=.*' '' -- $token)\n"
      "    for value in (__weft_values $key)\n      echo $key=$value\n    end\n"
      "  else if string match -q -- '-*' $token\n"
      "    printf '%s\\n' {}\n"
      "  else\n"
      "    __weft_values (commandline -opc)[-1]\n"
      "    printf '%s\\n' {}\n"
      "    {}\n"
      "  end\n"
      "end\n",
      fmt::join(flags(), " "),
      fmt::join(keys(), " "),
      kRecipes);
  script += text("complete -c weft -f -n __fish_use_subcommand -a '{}'\n",
                 fmt::join(options.commands, " "));
  return script + "complete -c weft -f -n 'not __fish_use_subcommand' -a '(__weft_words)'\n";
}

int run_completion(const CompletionOptions& options) {
  switch (options.shell) {
    case Shell::Bash:
      print_text(bash_script(options));
      break;
    case Shell::Zsh:
      print_text(zsh_script(options));
      break;
    case Shell::Fish:
      print_text(fish_script(options));
      break;
  }
  return kGood;
}

void add_shell(CLI::App& command,
               Action& chosen,
               CLI::App& program,
               const char* name,
               Shell shell) {
  CLI::App* one = command.add_subcommand(name, text("the script for {}", name));
  one->callback([&chosen, &program, shell] {
    CompletionOptions options{.shell = shell, .commands = {}};
    for (const CLI::App* known : program.get_subcommands({})) {
      options.commands.push_back(known->get_name());
    }
    chosen = [options] { return run_completion(options); };
  });
}

}  // namespace

void add_completion(CLI::App& program, Action& chosen) {
  CLI::App* command = program.add_subcommand(
      "completion",
      "print a script that lets a shell complete commands, keys, values, flags and recipes");
  command->require_subcommand(1);
  command->footer("Example: weft completion bash >~/.local/share/bash-completion/completions/weft");
  add_shell(*command, chosen, program, "bash", Shell::Bash);
  add_shell(*command, chosen, program, "zsh", Shell::Zsh);
  add_shell(*command, chosen, program, "fish", Shell::Fish);
}

}  // namespace weft::cli
