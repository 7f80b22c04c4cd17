import numpy as np

from avshift_core.latent.neighbors import cross_drive_neighbors, nearest


def test_a_point_is_not_its_own_neighbour():
    X = np.array([[0.0], [1.0], [3.0], [3.5]])
    distance, index = nearest(X, 1)
    assert index.ravel().tolist() == [1, 0, 3, 2]
    assert distance.ravel().tolist() == [1, 1, 0.5, 0.5]


def test_neighbours_of_the_own_drive_do_not_count():
    X = np.array([[0.0], [0.1], [0.2], [5.0], [5.1]])
    drive = np.array([0, 0, 1, 1, 0])
    row, neighbour = cross_drive_neighbors(X, drive, 1)
    assert dict(zip(row.tolist(), neighbour.tolist(), strict=True)) == {0: 2, 1: 2, 2: 1, 3: 4, 4: 3}
