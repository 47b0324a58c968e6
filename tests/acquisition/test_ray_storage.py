"""Workers read object storage that fails now and then: the picks of one process that reads files."""

import numpy as np
import pytest
import torch
from helpers import sharded
from helpers.s3_server import credentials, flaky_s3, uploaded

import balent
from balent import RayEngine, Shards, acquire

pytest.importorskip("ray", reason="the engine of a cluster needs ray: pip install 'balent[ray]'")
ENDS = (0, 3000, 3001, 5049)
X = np.random.default_rng(0).standard_normal((ENDS[-1], 6)).astype(np.float32)


@pytest.mark.slow
@pytest.mark.filterwarnings("default")  # of the server
@pytest.mark.parametrize("kind", ["npy", "parquet"])
def test_every_tenth_request_fails_and_picks_are_the_same(tmp_path, monkeypatch, kind):
    torch.manual_seed(0)
    layers = torch.nn.Linear(6, 16), torch.nn.ReLU(), torch.nn.Dropout(0.3), torch.nn.Linear(16, 4)
    sampled = balent.MCDropout(torch.nn.Sequential(*layers)).sample(20, seed=0)
    sharded.FORMATS[kind](tmp_path, X, ENDS)
    with flaky_s3() as (address, seen):
        for variable, value in credentials(address).items():
            monkeypatch.setenv(variable, value)
        pool = Shards.of(uploaded(address, tmp_path, f"pool-{kind}"))
        with RayEngine(workers=2, span_rows=1024) as engine:  # its workers have these variables too
            for strategy in ("balentacq", "power:bald", "auto", "core_mse"):
                found = acquire(sampled, pool, 30, strategy, engine=engine)
                local = acquire(sampled, Shards.of(tmp_path), 30, strategy)
                assert found.indices.tolist() == local.indices.tolist()
                assert found.scores.tolist() == local.scores.tolist()
        assert len(seen) > 40  # so that some failed
