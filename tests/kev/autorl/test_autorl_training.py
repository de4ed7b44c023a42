"""What a training script trains with is read from its source: right, or unknown, and never run."""

import json
from pathlib import Path
from textwrap import dedent

import pytest

from kev.autorl.journal.training import read_code, training_in

TRL = "from trl import GRPOConfig, GRPOTrainer, SFTConfig, SFTTrainer\n"
RUN = "trainer = GRPOTrainer(model='m', args=config)\ntrainer.train()\n"

SCRIPTS = {
    "direct": (TRL + "GRPOTrainer(args=GRPOConfig(learning_rate=1e-5, max_steps=20)).train()",
               "GRPO", {"lr": "1e-5", "max_steps": "20"}),
    "constants": (TRL + "LR = 2e-6\nB = 2 * 4\nconfig = GRPOConfig(learning_rate=LR, per_device_train_batch_size=B)\n"
                  + RUN, "GRPO", {"lr": "2e-6", "batch": "8"}),
    "renamed": ("import trl as t\nfrom trl import SFTConfig as C\nT = t.SFTTrainer\n"
                "T(args=C(num_train_epochs=3)).train()", "SFT", {"epochs": "3"}),
    "submodule": ("from trl.trainer.sft_trainer import SFTTrainer as S\nS(args=None).train()", "SFT", {}),
    "subclass": (TRL + "class Mine(GRPOTrainer):\n    pass\nMine(args=GRPOConfig(beta=0.1)).train()",
                 "GRPO", {"beta": "0.1"}),
    "in_main": (TRL + "def main():\n    config = SFTConfig(max_steps=7)\n    SFTTrainer(args=config).train()\n"
                "if __name__ == '__main__':\n    main()", "SFT", {"max_steps": "7"}),
    "dataclass": ("from dataclasses import dataclass\n" + TRL + "@dataclass\nclass P:\n    lr: float = 3e-5\n"
                  "    steps: int = 9\np = P(steps=11)\nconfig = GRPOConfig(learning_rate=p.lr, max_steps=p.steps)\n"
                  + RUN, "GRPO", {"lr": "3e-5", "max_steps": "11"}),
    "argparse": ("import argparse\n" + TRL + "parser = argparse.ArgumentParser()\n"
                 "parser.add_argument('--learning-rate', type=float, default='5e-6')\n"
                 "args = parser.parse_args()\nconfig = GRPOConfig(learning_rate=args.learning_rate)\n" + RUN,
                 "GRPO", {"lr": "5e-6"}),
    "dictionaries": (TRL + "cfg = {'train': {'lr': 1e-4}}\nconfig = GRPOConfig(learning_rate=cfg['train']['lr'])\n"
                     + RUN, "GRPO", {"lr": "0.0001"}),
    "omegaconf": ("from omegaconf import OmegaConf\n" + TRL + "cfg = OmegaConf.create({'train': {'steps': 5}})\n"
                  "config = GRPOConfig(max_steps=cfg.train.steps)\n" + RUN, "GRPO", {"max_steps": "5"}),
    "unpacked": (TRL + "common = dict(seed=3)\nconfig = GRPOConfig(beta=0.0, **common, **{'max_steps': 4})\n" + RUN,
                 "GRPO", {"max_steps": "4", "beta": "0.0", "seed": "3"}),
    "unused_function": (TRL + "def old():\n    SFTTrainer(args=None)\nconfig = GRPOConfig(max_steps=1)\n" + RUN,
                        "GRPO", {"max_steps": "1"}),
    "never": (TRL + "if False:\n    SFTTrainer(args=None)\nconfig = GRPOConfig(max_steps=1)\n" + RUN,
              "GRPO", {"max_steps": "1"}),
    "other_method": ("from trl import DPOConfig, DPOTrainer\nDPOTrainer(args=DPOConfig(beta=0.2)).train()",
                     "unknown", {"trainer": "DPOTrainer", "beta": "0.2"}),
    "rloo": ("from trl import RLOOTrainer\nRLOOTrainer(args=None).train()", "unknown", {"trainer": "RLOOTrainer"}),
    "two_trainers": (TRL + "SFTTrainer(args=None).train()\nGRPOTrainer(args=None).train()",
                     "unknown", {"trainer": "GRPOTrainer+SFTTrainer"}),
    "chosen": (TRL + "import os\nT = SFTTrainer if os.environ.get('S') else GRPOTrainer\nT(args=None).train()",
               "unknown", {"trainer": "unknown"}),
    "shadowed": (TRL + "class GRPOTrainer:\n    pass\nGRPOTrainer(args=None).train()",
                 "unknown", {"trainer": "unknown"}),
    "own_class": ("class SFTTrainer:\n    def train(self): ...\nSFTTrainer().train()",
                  "unknown", {"trainer": "unknown"}),
    "conditional": (TRL + "LR = 1e-5\nimport os\nif os.environ.get('X'):\n    LR = 1e-3\n"
                    "config = GRPOConfig(learning_rate=LR, max_steps=2)\n" + RUN,
                    "GRPO", {"lr": "unknown", "max_steps": "2"}),
    "mutated": (TRL + "config = GRPOConfig(learning_rate=1e-5, max_steps=2)\nconfig.learning_rate = 1.0\n" + RUN,
                "GRPO", {"lr": "unknown", "max_steps": "2"}),
    "mutated_dict": (TRL + "cfg = {'lr': 1e-5}\ncfg['lr'] = 2\nconfig = GRPOConfig(learning_rate=cfg['lr'])\n" + RUN,
                     "GRPO", {"lr": "unknown"}),
    "setattr": (TRL + "config = GRPOConfig(learning_rate=1e-5)\nsetattr(config, 'x', 1)\n" + RUN, "GRPO", {}),
    "parameter": (TRL + "def main(lr=1e-5):\n    config = GRPOConfig(learning_rate=lr)\n"
                  "    GRPOTrainer(args=config).train()\nmain(1e-3)", "GRPO", {"lr": "unknown"}),
    "environment": (TRL + "import os\nconfig = GRPOConfig(learning_rate=float(os.environ.get('LR', '1e-5')))\n" + RUN,
                    "GRPO", {"lr": "unknown"}),
    "loop": (TRL + "for lr in (1e-5, 1e-4):\n    config = GRPOConfig(learning_rate=lr)\n"
             "    GRPOTrainer(args=config).train()", "GRPO", {}),
    "global": (TRL + "LR = 1e-5\ndef f():\n    global LR\n    LR = 2\nf()\nconfig = GRPOConfig(learning_rate=LR)\n"
               + RUN, "GRPO", {"lr": "unknown"}),
    "star": (TRL + "LR = 1e-5\nfrom settings import *\nconfig = GRPOConfig(learning_rate=LR)\n" + RUN,
             "unknown", {"trainer": "unknown"}),
    "never_trained": (TRL + "GRPOTrainer(args=None)", "unknown", {"trainer": "GRPOTrainer"}),
    "copy": ("import shutil, os\nshutil.copytree(os.environ['MODEL_PATH'], 'output/v1')", "copy_model", {}),
    "copy_and_edit": ("import shutil, torch\nshutil.copytree('a', 'b')\ntorch.save({}, 'b/x')", "unknown", {}),
    "placeholder": ("'''to do'''\nprint('later')", "placeholder", {}),
    "own_loop": ("import torch\nloss = torch.zeros(1)\nloss.backward()", "unknown", {}),
    "broken": ("def (", "unknown", {}),
}  # fmt: skip


@pytest.mark.parametrize("name", SCRIPTS)
def test_type_and_settings_are_right_or_unknown(tmp_path: Path, name: str) -> None:
    script, kind, settings = SCRIPTS[name]
    (tmp_path / "train.py").write_text(script)
    found = training_in(read_code(tmp_path))
    assert (found.kind, found.settings) == (kind, settings)


def test_an_argument_that_a_script_passes_is_not_its_default(tmp_path: Path) -> None:
    script, _, settings = SCRIPTS["argparse"]
    (tmp_path / "train.py").write_text(script)
    assert training_in(read_code(tmp_path)).settings == settings
    (tmp_path / "start.sh").write_text("python train.py --learning-rate 1\n")
    assert training_in(read_code(tmp_path)).settings == {"lr": "unknown"}


def test_a_constant_of_another_file_is_followed(tmp_path: Path) -> None:
    (tmp_path / "settings.py").write_text("STEPS = 12\n")
    (tmp_path / "train.py").write_text(TRL + "from settings import STEPS\nconfig = GRPOConfig(max_steps=STEPS)\n" + RUN)
    assert training_in(read_code(tmp_path)).settings == {"max_steps": "12"}


def test_the_source_is_never_run_and_links_are_not_followed(tmp_path: Path) -> None:
    code = tmp_path / "code"
    code.mkdir()
    mark = tmp_path / "ran"
    (code / "train.py").write_text(
        dedent(f"""
        open({json.dumps(str(mark))}, "w")
        from trl import SFTTrainer
        SFTTrainer(args=None).train()
    """)
    )
    (tmp_path / "other.py").write_text(SCRIPTS["direct"][0])
    (code / "linked.py").symlink_to(tmp_path / "other.py")
    assert training_in(read_code(code)).kind == "SFT" and not mark.exists()
