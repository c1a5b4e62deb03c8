"""The Q-Former, QuMATL, and their invariants."""

import json
from dataclasses import replace

import numpy as np
import pytest
import torch
from numpy.testing import assert_allclose
from torch.nn import functional

from dissensus import Annotations
from dissensus.deep.nn import Examples, Training
from dissensus.deep.nn.features import Features, Layout, features_of
from dissensus.deep.tendency import FitOptions
from dissensus.deep.tendency.auto import Query
from dissensus.deep.tendency.qformer import QFormer, Shape
from dissensus.deep.tendency.query_heads import (
    OrdinalHeads,
    OwnHeads,
    SharedHeads,
    ShrunkHeads,
    gaps_of,
    slots,
)
from dissensus.deep.tendency.qumatl import Qumatl, vote_shares
from dissensus.deep.tendency.qumatl_network import QueryNet, Sizes
from dissensus.errors import DataError, MethodError
from dissensus.registry import tendencies

from ..support import benchmark
from .test_qformer import filled

simulate_tendency = benchmark("attentive_crowds").simulate_tendency
TINY = {"width": 16, "layers": 2, "heads": 2, "hidden": 16, "fc": 8, "dropout": 0.0, "fits": 1}


def crowd(n_items=40, n_annotators=4, seed=0, kept=1.0):
    """Return features and annotations of a small simulated crowd."""
    simulated = simulate_tendency(
        n_items=n_items, n_annotators=n_annotators, groups=2, positions=4, seed=seed, kept=kept
    )
    return features_of(simulated.inputs), simulated.annotations, simulated


def fitted(method, n_items=40, **more):
    features, annotations, _ = crowd(n_items, **more)
    return method.fit(features, annotations), features, annotations


def net_for(method, features, annotations):
    """Return a network that has hardly been trained, and a batch with all annotations."""
    net = replace(method, epochs=1, lr=1e-12).fit(features, annotations).nets[0]
    net.zero_grad(set_to_none=True)
    return net, next(iter(Examples(features.rows, annotations).batches(10**6, 0, 0, shuffle=False)))


class TestHeads:
    @pytest.mark.parametrize("hidden", [0, 6])
    def test_own_heads_are_one_network_each(self, hidden):
        torch.manual_seed(0)
        heads = OwnHeads(5, 7, hidden, 3)
        x, annotator = torch.randn(30, 7), torch.randint(5, (30,))
        got = heads(x, annotator)
        for pair in range(30):
            out = x[pair]
            for position, (weight, bias) in enumerate(
                zip(heads.weights, heads.biases, strict=True)
            ):
                out = functional.gelu(out) if position else out
                out = out @ weight.all[annotator[pair]] + bias.all[annotator[pair]]
            assert_allclose(got[pair].detach(), out.detach(), atol=1e-5)

    def test_annotators_without_labels_get_no_gradient(self):
        torch.manual_seed(0)
        for heads in (OwnHeads(6, 7, 4, 3), ShrunkHeads(6, 7, 0, 3)):
            heads(torch.randn(4, 7), torch.tensor([1, 4, 1, 1])).sum().backward()
            for table in heads.modules():
                if hasattr(table, "all"):
                    assert table.weight.grad.coalesce().indices()[0].tolist() == [1, 4]

    def test_shrunk_heads_begin_as_one(self):
        torch.manual_seed(0)
        heads = ShrunkHeads(6, 7, 0, 3)
        x, annotator = torch.randn(4, 7), torch.tensor([1, 4, 0, 2])
        assert_allclose(heads(x, annotator).detach(), heads.shared(x, annotator).detach())

    def test_rows_of_pairs_are_short_however_unevenly_pairs_are_spread(self):
        owner = torch.cat([torch.zeros(1000).long(), torch.arange(1, 101)])
        rows = slots(owner)
        assert len(rows.owner) * rows.size <= 3 * len(owner) + rows.size
        x = torch.randn(len(owner), 2)
        assert torch.equal(rows.unpack(rows.pack(x)), x)
        assert torch.equal(rows.owner[rows.position // rows.size], owner)

    def test_ordinal_heads_give_distributions_that_rise_with_the_score(self):
        torch.manual_seed(0)
        heads = OrdinalHeads(
            SharedHeads(2, 1, 0, 1), gaps_of(torch.tensor([3.0, 5.0, 9.0, 2.0])), 2, own=True
        )
        torch.nn.init.ones_(heads.score.body[0].weight)
        torch.nn.init.zeros_(heads.score.body[0].bias)
        probability = heads(torch.linspace(-30, 30, 61)[:, None], torch.zeros(61).long()).exp()
        assert_allclose(probability.sum(dim=1).detach(), 1, atol=1e-5)
        mean = (probability * torch.arange(4)).sum(dim=1)
        assert (mean.diff() >= -1e-6).all()
        middle = heads(torch.zeros(1, 1), torch.zeros(1).long()).exp()[0]
        assert_allclose(middle.detach(), np.array([3.5, 5, 9, 2.5]) / 20, atol=1e-3)


class TestNetwork:
    @pytest.mark.parametrize("head", ["own", "shared", "bias", "shrunk"])
    @pytest.mark.parametrize("self_attention", [True, False])
    @torch.no_grad()
    def test_annotators_in_another_order_give_the_same_loss(self, head, self_attention):
        features, annotations, _ = crowd()
        method = Query(**TINY, head=head, self_attention=self_attention)
        with torch.enable_grad():
            net, batch = net_for(method, features, annotations)
        filled(net)
        before = float(net.loss(batch))
        order = torch.tensor([2, 0, 3, 1])  # who stands now at a place
        for table in net.modules():
            if hasattr(table, "all"):
                table.weight.data.copy_(table.weight.data[order])
        there = torch.argsort(order)[batch.annotator]
        assert float(net.loss(batch._replace(annotator=there))) == pytest.approx(before, rel=1e-5)
        assert float(net.loss(batch)) != pytest.approx(before, rel=1e-5)

    def test_computing_only_needed_queries_equals_computing_all(self):
        features, annotations, _ = crowd(kept=0.4)
        net, batch = net_for(Query(**TINY, self_attention=False), features, annotations)
        filled(net)
        seen = net.split(batch.x)
        every = net.attention(seen, torch.arange(4)).values[batch.row, batch.annotator]
        assert_allclose(
            net.attend(seen, batch.row, batch.annotator).detach(), every.detach(), atol=1e-5
        )

    def test_items_without_labels_beside_items_with_many_are_kept_apart(self):
        features, annotations, _ = crowd()
        net, batch = net_for(Query(**TINY, self_attention=False), features, annotations)
        filled(net)
        seen = net.split(batch.x[:4])
        row = torch.tensor([0, 2, *[3] * 10])  # three has two rows, one has none
        annotator = torch.arange(12) % 4
        every = net.attention(seen, torch.arange(4)).values[row, annotator]
        assert_allclose(net.attend(seen, row, annotator).detach(), every.detach(), atol=1e-5)

    @pytest.mark.parametrize("self_attention", [True, False])
    def test_a_label_that_was_not_given_is_in_no_gradient(self, self_attention):
        features, annotations, _ = crowd()
        net, batch = net_for(
            Query(**TINY, head="own", self_attention=self_attention), features, annotations
        )
        filled(net)
        without = batch.annotator != 2
        net.loss(
            type(batch)(
                batch.x,
                batch.row[without],
                batch.annotator[without],
                batch.label[without],
                batch.item,
            )
        ).backward()
        queries = net.queries.own.weight.grad
        queries = queries.to_dense() if queries.is_sparse else queries
        heads = net.heads.weights[0].weight.grad.to_dense()
        assert float(heads[2].abs().max()) == 0
        assert float(heads[1].abs().max()) > 0
        assert (float(queries[2].abs().max()) == 0) == (not self_attention)

    def test_one_head_and_equal_queries_give_equal_predictions(self):
        features, annotations, _ = crowd()
        net, batch = net_for(Query(**TINY, head="shared"), features, annotations)
        filled(net).queries.own.weight.data[:] = 0.5
        log = net.log_given(net.split(batch.x), batch.row, batch.annotator).reshape(-1, 4, 3)
        assert_allclose(log.detach(), log[:, :1].expand(-1, 4, -1).detach(), atol=1e-5)

    @pytest.mark.parametrize("head", ["own", "shared", "bias", "shrunk"])
    def test_one_more_annotator_adds_a_query_and_a_head_and_nothing_else(self, head):
        method = Query(**TINY, head=head, epochs=1)
        sizes = []
        for count in (4, 5):
            features, annotations, _ = crowd(n_annotators=count)
            net, _ = net_for(method, features, annotations)
            sizes.append(sum(value.numel() for value in net.parameters()))
        own = {"own": 8 * 3 + 3, "shared": 0, "bias": 3, "shrunk": 8 * 3 + 3}[head]
        assert sizes[1] - sizes[0] == 16 + own

    def test_a_step_does_not_cost_what_annotators_without_labels_would(self):
        simulated = simulate_tendency(n_items=30, n_annotators=3, groups=2, positions=4)
        annotations = simulated.annotations
        many = Annotations.from_codes(
            annotations.item,
            annotations.annotator * np.int64(9999),
            annotations.label,
            items=30,
            annotators=20_000,
            classes=3,
        )
        method = Query(**TINY, head="own", epochs=2)
        got = method.fit(features_of(simulated.inputs), many)
        assert not got.nets[0].sizes.shape.self_attention
        probability = got.log_probability(
            features_of(simulated.inputs), np.array([0, 1]), np.array([19_998, 7])
        )
        assert_allclose(np.exp(probability).sum(axis=1), 1)


class TestLearning:
    @pytest.mark.parametrize(
        "more",
        [
            {},
            {"head": "own", "self_attention": False},
            {"head": "shared", "cross_every": 2},
            {"qformer": False},
            {"ordinal": True},
            {"ordinal": True, "head": "own", "head_hidden": 5},
            {"votes": "before"},
            {"votes": "after"},
            {"scale": "layer", "positions": False, "reduction": "sum", "choose": "accuracy"},
        ],
        ids=str,
    )
    def test_it_learns_and_comes_back_from_its_state(self, more):
        method = Query(**{**TINY, "epochs": 3, **more})
        got, features, _ = fitted(method, kept=0.7)
        log = got.log_proba(features)
        assert log.shape == (40, 4, 3)
        assert_allclose(np.exp(log).sum(axis=2), 1)
        state = got.state()
        again = method.restore(type(state)(json.loads(json.dumps(state.notes)), state.arrays))
        assert_allclose(again.log_proba(features), log, atol=1e-6)

    def test_the_same_seed_gives_the_same_and_fits_differ(self):
        method = Query(**{**TINY, "fits": 2, "epochs": 2})
        features, annotations, _ = crowd()
        one, two = (
            method.fit(features, annotations, FitOptions(seed=3)).log_proba(features)
            for _ in range(2)
        )
        other = method.fit(features, annotations, FitOptions(seed=4))
        assert np.array_equal(one, two)
        assert not np.allclose(one, other.log_proba(features))
        first, second = other.nets
        assert not torch.equal(first.queries.own.weight, second.queries.own.weight)

    def test_it_learns_what_each_annotator_attends_to(self):
        simulated = simulate_tendency(n_items=460, n_annotators=4, groups=2, positions=4, seed=1)
        features = features_of(simulated.inputs)
        train, test = np.arange(400), np.arange(400, 460)
        annotations = simulated.annotations.keep(simulated.annotations.item < 400)
        annotations = Annotations.from_codes(
            annotations.item,
            annotations.annotator,
            annotations.label,
            items=400,
            annotators=4,
            classes=3,
        )
        method = Query(width=32, layers=1, heads=2, hidden=32, fc=32, fits=1, epochs=25, lr=5e-3)
        got = method.fit(features.take(train), annotations)
        right = got.log_proba(features.take(test)).argmax(axis=2) == simulated.labels[test]
        assert right.mean() > 0.75
        same = simulate_tendency(n_items=460, n_annotators=4, groups=2, positions=4, seed=1)
        assert np.array_equal(same.labels, simulated.labels)

    def test_votes_after_are_the_vote_of_stored_predictions(self):
        features, annotations, _ = crowd(n_annotators=5)
        after = Query(**{**TINY, "epochs": 2, "votes": "after"}).fit(features, annotations)
        plain = Query(**{**TINY, "epochs": 2}).fit(features, annotations)
        stored = np.exp(plain.log_proba(features))
        votes = np.stack([(stored.argmax(axis=2) == each).sum(axis=1) for each in range(3)], axis=1)
        got = after.log_proba(features)
        assert_allclose(got[:, 0], np.log(vote_shares(stored)), atol=1e-6)
        clear = np.sort(votes, axis=1)[:, -1] > np.sort(votes, axis=1)[:, -2]
        assert clear.any()
        assert np.array_equal(got[clear, 0].argmax(axis=1), votes[clear].argmax(axis=1))

    def test_votes_before_of_one_annotator_are_ordinary_training(self):
        features, annotations, _ = crowd(n_annotators=1)
        ways = [{"votes": "before"}, {"head": "shared"}]
        one, two = (
            Query(**{**TINY, "epochs": 3, **way}).fit(features, annotations) for way in ways
        )
        assert_allclose(one.log_proba(features), two.log_proba(features), atol=1e-6)

    def test_items_of_another_kind_are_refused_in_one_line(self):
        got, _, _ = fitted(Query(**TINY, epochs=1))
        with pytest.raises(DataError, match="4 tokens of 16"):
            got.log_proba(features_of(np.zeros((3, 16))))
        with pytest.raises(DataError, match="tokens"):
            got.log_proba(features_of(np.zeros((3, 5, 16))))

    def test_qumatl_is_trained_as_published(self):
        summary = Qumatl().training(3)
        wanted = Training(
            epochs=200, batch=32, optimizer="adamw", lr=1e-4, decay=0.01, clip=1.0,
            scheduler="warmup-cosine", warmup=0.2, patience=25, seed=3,
        )  # fmt: skip
        assert summary == wanted
        shape = Qumatl()._shape(10)
        assert (shape.layers, shape.width, shape.heads, shape.hidden) == (12, 768, 12, 3072)
        net_sizes = QFormer(Shape(), 1408)
        assert sum(layer.cross is not None for layer in net_sizes.layers) == 6

    def test_the_published_setting_is_unit_vectors_dropout_and_relu(self):
        features, annotations, _ = crowd(n_annotators=3)
        method = tendencies.create("qumab[width=16,layers=2,heads=2,hidden=16,epochs=1]")
        assert (method.fc, method.head_hidden, method.batch, method.lr) == (256, 256, 64, 1e-5)
        net = method.fit(features, annotations).nets[0]
        x = net.split(features.rows[np.arange(5)])
        row, annotator = torch.arange(5).repeat_interleave(3), torch.arange(3).repeat(5)
        got = net.log_given(x, row, annotator)
        projected = net.fc[0](net.attend(x, row, annotator))
        unit = projected / projected.norm(dim=1, keepdim=True)
        for pair in range(15):
            (first, last), (bias, shift) = (
                [table.all[annotator[pair]] for table in tables]
                for tables in (net.heads.weights, net.heads.biases)
            )
            logits = torch.relu(unit[pair] @ first + bias) @ last + shift
            assert_allclose(got[pair].detach(), logits.log_softmax(0).detach(), atol=1e-5)
        dropouts = [net.fc[-1].p, net.heads.after[-1].p, net.qformer.dropout.p]
        assert dropouts == [0.5, 0.3, 0.1]

    def test_it_has_as_many_parameters_as_published(self):
        """106.02 million, for ten annotators, six classes and the tokens of ViT-G."""
        with torch.device("meta"):
            layout = Layout(1408, (257,), 1408)
            net = QueryNet(Sizes(layout, Qumatl()._shape(10), 10, 6), Qumatl())
        assert round(sum(value.numel() for value in net.parameters()) / 1e6, 2) == 106.02


class TestNewcomers:
    @pytest.mark.parametrize(
        "more", [{"self_attention": True}, {"self_attention": False, "head": "own"}], ids=str
    )
    def test_only_the_row_of_the_new_annotator_is_trained(self, more):
        method = Query(**{**TINY, "epochs": 2, **more})
        got, features, annotations = fitted(method)
        before = got.log_proba(features)
        label = annotations.label[annotations.annotator == 1].astype(int)
        grown = got.with_annotator(features, label, FitOptions())
        assert grown.n_annotators == 5
        assert_allclose(grown.log_proba(features)[:, :4], before, atol=1e-6)
        old, new = got.nets[0].state_dict(), grown.nets[0].state_dict()
        for name, value in old.items():
            assert torch.equal(new[name][: len(value)] if value.ndim else new[name], value), name
        assert not torch.equal(new["queries.own.weight"][4], new["queries.own.weight"][1])
        again = method.restore(grown.state())
        assert_allclose(again.log_proba(features), grown.log_proba(features), atol=1e-6)
        twice = grown.with_annotator(features, label, FitOptions())
        assert_allclose(twice.log_proba(features)[:, :5], grown.log_proba(features), atol=1e-6)

    def test_a_new_annotator_starts_from_the_most_similar_one(self):
        simulated = simulate_tendency(n_items=300, n_annotators=4, groups=2, positions=4, seed=2)
        features = features_of(simulated.inputs)
        known = simulated.annotations.keep(simulated.annotations.annotator < 3)
        known = Annotations.from_codes(
            known.item, known.annotator, known.label, items=300, annotators=3, classes=3
        )
        method = Query(width=32, layers=1, heads=2, hidden=32, fc=32, fits=1, epochs=25, lr=5e-3)
        got = method.fit(features, known)
        few = np.arange(20)
        grown = got.with_annotator(features.take(few), simulated.labels[few, 3], FitOptions())
        rest = features.take(np.arange(20, 300))
        right = grown.log_proba(rest, [3])[:, 0].argmax(axis=1) == simulated.labels[20:, 3]
        assert right.mean() > 0.7  # of group 1; the others are at .33

    def test_metadata_predict_an_annotator_without_labels(self):
        simulated = simulate_tendency(n_items=300, n_annotators=9, groups=2, positions=4, seed=2)
        features = features_of(simulated.inputs)
        known = simulated.annotations.keep(simulated.annotations.annotator < 8)
        known = Annotations.from_codes(
            known.item, known.annotator, known.label, items=300, annotators=8, classes=3
        )
        side = np.eye(2)[simulated.group]
        method = Query(width=32, layers=1, heads=2, hidden=32, fc=32, fits=1, epochs=25, lr=5e-3)
        got = method.fit(features, known, FitOptions(metadata=side[:8]))
        right = {}
        for position in range(2):
            grown = got.with_annotator(
                features.take([]), np.array([], int), FitOptions(metadata=np.eye(2)[position])
            )
            found = grown.log_proba(features, [8])[:, 0].argmax(axis=1)
            right[position] = (found == simulated.labels[:, 8]).mean()
        assert right[0] > 0.65 > 0.5 > right[1]

    def test_new_annotators_without_labels_and_metadata_are_refused_in_one_line(self):
        got, features, _ = fitted(Query(**TINY, epochs=1))
        with pytest.raises(MethodError, match="no metadata; give some labels"):
            got.with_annotator(features.take([]), np.array([], int), FitOptions())
        with pytest.raises(DataError, match="0 metadata features of an annotator, but 2 are given"):
            got.with_annotator(
                features.take([]), np.array([], int), FitOptions(metadata=np.zeros(2))
            )


class TestItemsOfOtherLengths:
    """Texts that come later are shorter or longer than those that were learned from."""

    def predictions(self, model, values, mask, seed=0):
        features = Features.from_tokens(values, mask)
        item = np.repeat(np.arange(len(features)), 3)
        return model.log_probability(features, item, np.tile(np.arange(3), len(features)))

    def learned(self, frames=()):
        random = np.random.default_rng(0)
        values = random.normal(size=(20, *frames, 6, 5)).astype(np.float32)
        mask = random.random(values.shape[:-1]) > 0.3
        mask[..., 0] = True
        annotations = Annotations.from_matrix(random.integers(2, size=(20, 3)))
        model = Query(**TINY, epochs=1).fit(Features.from_tokens(values, mask), annotations)
        return model, values, mask

    def test_padding_changes_nothing(self):
        model, values, mask = self.learned()
        wide = np.concatenate([values, np.full((20, 4, 5), 7, np.float32)], axis=1)
        more = np.concatenate([mask, np.zeros((20, 4), bool)], axis=1)
        plain = self.predictions(model, values, mask)
        assert_allclose(self.predictions(model, wide, more), plain, atol=1e-5)

    def test_short_items_alone_are_predicted_as_among_long_ones(self):
        model, values, mask = self.learned()
        mask[:4, 3:] = False
        plain = self.predictions(model, values, mask)[: 4 * 3]
        assert_allclose(self.predictions(model, values[:4, :3], mask[:4, :3]), plain, atol=1e-5)

    def test_no_items_have_no_predictions(self):
        model, values, mask = self.learned()
        assert self.predictions(model, values[:0, :3], mask[:0, :3]).shape == (0, 2)

    def test_fewer_frames_will_do_but_not_more(self):
        model, values, mask = self.learned(frames=(4,))
        assert np.isfinite(self.predictions(model, values[:, :2], mask[:, :2])).all()
        twice = np.concatenate([values, values], axis=1), np.concatenate([mask, mask], axis=1)
        with pytest.raises(DataError, match="tokens"):
            self.predictions(model, *twice)
